"""Every difference between upstream releases, and every private upstream name that is used.

``stack`` builds quantizer, partitioner and compile specification for a target and recipe;
``capture`` takes TOSA flatbuffers and Vela payloads out of a running lowering, ``passes`` what each
pass did (``snapshots`` is that as data); ``backend`` runs the TOSA backend for one delegate; ``tosa``
has the schema's classes and the reference model; ``sources`` finds installed source text; ``releases``
names what is installed. ``warm`` keeps and leaves out work. Nothing outside this package imports from
executorch, torchao or the TOSA packages, so a new release is looked at in one place.

Each private name says in a comment in which releases it was seen.
"""
