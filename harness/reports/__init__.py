"""What a run leaves for its readers: the listing, the report, bug folders."""
