"""Make a case smaller while the same bug shows.

A *cut* is one change of a case, with words for it: a node less, an input instead of what computes a value, a
smaller size, a plainer calibration. ``structure``, ``sizes`` and ``data`` propose cuts; none of them knows what
is looked for. ``measure`` orders cases, and a cut counts only if it comes out smaller, so that a reduction ends.
``search`` tries cuts until none shows the bug any more, keeps a checkpoint, and names the *neighbour*: a
smallest change that makes the bug go away. ``judging`` says what showing the bug means: the same bucket, twice.

Beside Hypothesis' shrinking, which changes what was drawn, this changes cases, whoever made them.
"""
