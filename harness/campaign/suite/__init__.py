"""Upstream's own Arm tests as subjects of a campaign.

``taking`` captures what the tests of one file are about (in a worker: it runs them up to their pipeline), ``source``
hands those cases to a campaign and remembers what was taken, ``table`` counts what became of them by test file.
Which tests there are, and how their modules are had, is ``harness.compat.suite``'s.
"""
