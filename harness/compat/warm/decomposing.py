"""``decompose_what_is_there``: a program that has nothing to decompose is not traced again (an entry of ``tricks``).

For each edge program ``_gen_edge_manager_for_partitioners`` traces the exported program three times: once to make it
functional, once to decompose what the partitioner does not keep whole, and once to decompose what is left when the
operators that it keeps bear another name. A trace of a functional program that has no operator to decompose makes the
same program. executorch 1.5.1 leaves the second one out for that reason, but only for partitioners that have no filter
on nodes, and Arm's have one.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

from functools import wraps
from typing import Any
from unittest import mock

from executorch.exir.program import _program
from torch.export import ExportedProgram

from harness.compat.sources import unchanged

_GENERATE = "_gen_edge_manager_for_partitioners"
_WRITTEN_FOR = {_GENERATE: "14a2b38bd338"}
"""What was read: that the first of the traces makes a program functional, and what the others get."""


def decompose_what_is_there() -> bool:
    """Leave out traces of programs that are decomposed already, if the installed code is known; returns whether."""
    if not unchanged(_program.__name__, _WRITTEN_FOR):
        return False
    generate = getattr(_program, _GENERATE)

    @wraps(generate)
    def generating(*args: Any, **named: Any) -> Any:
        run_decompositions, traced = ExportedProgram.run_decompositions, list[ExportedProgram]()

        def decompose(program: ExportedProgram, table: Any) -> ExportedProgram:
            functional = any(program is made for made in traced)
            if functional and not _program.contains_any_call_fn_target_op(program.graph_module, table):
                return program
            traced.append(run_decompositions(program, table))
            return traced[-1]

        with mock.patch.object(ExportedProgram, "run_decompositions", decompose):
            return generate(*args, **named)

    setattr(_program, _GENERATE, generating)
    return True
