"""How soon does a cold campaign find again what the corpus has?

A *contestant* is a way of looking for bugs (``contestants``). Each has a *course* for each seed: the processor time
that it has spent, and when it first saw each root cause of the corpus (``course``). The corpus is nothing but the
answer key: no example database, and no motif that was written for a bug of it. A finding shows a cause if it is
*proved* to be that entry's bug; what only resembles one counts for nothing. Time is the processor time of the workers,
their start included. Proofs, which a campaign that knows nothing would not try, are left out of it.

Courses lie on disk, grow when the same command is given again with more time, and are told together (``figures``).
"""
