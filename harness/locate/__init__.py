"""Who is to blame: the first pass, and the first step of a payload, that makes a difference."""
