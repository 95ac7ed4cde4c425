"""Every difference between upstream releases, and every private upstream name that is used.

``stack`` builds quantizer, partitioner and compile specification for a target and recipe;
``capture`` takes TOSA flatbuffers and Vela payloads out of a running lowering; ``releases``
names what is installed. Nothing outside this package imports from executorch, torchao or the
TOSA packages except through it, so a new release is looked at in one place.

Each private name says in a comment in which releases it was seen.
"""
