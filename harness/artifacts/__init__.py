"""Readers of what a lowering wrote: TOSA flatbuffers, Vela payloads, ``.pte`` programs.

Each reader turns bytes into frozen data and imports neither torch nor executorch, so an oracle
can ask questions of stored artifacts. Damaged bytes raise ``BadInput`` with the place; nothing
here reads past the end, loops on a length that the file invents, or trusts a count.
"""
