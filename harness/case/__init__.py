"""What a case is: its data, checks, modules built from it, operators, distributions, recipes and targets."""
