"""The command line, the pytest plugin and the benchmark; a package that imports nothing, as a plugin must be light."""
