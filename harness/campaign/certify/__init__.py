"""Certificates: the evidence that a correction removes its bug and moves nothing that was right.

``plan`` draws the graphs (``generators.cases``) and says which comparisons a correction needs,
``comparing`` makes one of them inside a worker, ``store`` keeps them so that an interrupted run goes
on where it was, ``deciding`` turns them into a verdict, ``page`` into a Markdown page, and
``smaller`` cuts a counterexample down.

Words: *stock* is the installed release as it is. A *variant* is a set of corrections that apply
together. A comparison lowers one case stock and with each variant, and looks at outputs and oracles
only where the artifacts differ: what is the same program needs no further evidence.
"""
