"""What was observed, what the artifacts mean, and what rounding allows."""
