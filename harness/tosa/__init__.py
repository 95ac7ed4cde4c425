"""The Vela engine: TOSA programs that are drawn, compiled, run and judged without PyTorch, thousands a minute.

``program`` is the data: a small graph of TOSA operators with its constants. ``translating`` writes it as a flatbuffer
and reads one. ``compiling`` calls Vela, ``inputs`` makes the arrays, ``judging`` compares Vela's stream on armdiff's
model of the Ethos-U with the TOSA reference model, and ``engine`` does all that for many programs in child processes,
since Vela can die. ``reducing`` makes a program smaller while its finding stays. ``twins`` has programs that must
return the same bits, ``comparing_twins`` compares them. Drawing is ``generators.programs``, mutating
``generators.mutations``.

A *program* here is what the field calls a network: the TOSA graph of one delegate, compiled for one accelerator.
"""
