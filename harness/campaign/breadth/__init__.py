"""The pass-level mode: many quantizations of one graph through the Arm passes and the serializer only.

A *variant* is a case like another but for calibration, recipe or seeds. Most of a lowering does not
depend on them: export, the edge program and its partitions are made once
(``harness.campaign.breadth.partitioned_graph``), and for each variant only what PT2E decided is put in before the Arm
passes run. The oracles that need no run judge what comes out. Whatever they find is confirmed by the full pipeline,
which runs the variant as any case.
"""
