"""The exactness table: the Ethos-U model against the TOSA reference model, on real Vela output."""
