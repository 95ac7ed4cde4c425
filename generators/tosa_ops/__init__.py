"""One declarative entry a TOSA operator: what it starts from, and how a program goes on with it.

A module has its entries in a tuple ``TOSA_OPERATORS``; ``generators.programs`` finds them. An entry that makes a
result in int32 or int48 brings it back to int8 or int16 by a RESCALE, as ExecuTorch does; where TOSA allows int32 for
itself there is an entry that starts from int32.
"""
