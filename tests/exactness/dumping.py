"""Write everything about one program to a folder: to look at, to re-run alone, to hand on.

The folder gets ``program.tosa``, ``payload.npz`` (Vela's raw format), for each call ``call0.npz`` with
``input0``…, ``reference0``… and ``model0``…, and ``README.txt`` with the two command lines.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.artifacts.npz import payload_of_npz
from harness.artifacts.tosa import decode_tosa
from harness.ethosu.accelerator import ACCELERATORS
from tests.exactness.comparing import input_words, run_call
from tests.exactness.configurations import Configuration
from tests.exactness.preparing import compiled_key, reference_key
from tests.exactness.program import Program
from tests.exactness.store import Compiled, Reference, Store


def dump(program: Program, configuration: Configuration, store: Store, folder: Path) -> None:
    """Write one prepared program."""
    place = folder / f"{program.name}-{configuration.accelerator}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "program.tosa").write_bytes(program.tosa)
    compiled = store.load(compiled_key(program, configuration), Compiled)
    reference = store.load(reference_key(program), Reference)
    assert compiled is not None
    assert reference is not None
    text = [f"{program.name}: {' '.join(program.operators)}; {input_words(program)}"]
    text.append(f"vela {' '.join(configuration.options)} program.tosa")
    if compiled.refused:
        text.append(f"refused by Vela: {compiled.refused}")
    else:
        np.savez(place / "payload.npz", **compiled.payload)
    for number, call in enumerate(reference.calls):
        arrays = {f"input{index}": stored.array for index, stored in enumerate(call.inputs)}
        arrays |= {f"reference{index}": stored.array for index, stored in enumerate(call.outputs)}
        if call.refused:
            text.append(f"call {number}: {call.refused}")
        elif not compiled.refused:
            payload, block = payload_of_npz(compiled.payload), decode_tosa(program.tosa).main
            execution = run_call(payload, block, call, ACCELERATORS[configuration.accelerator])
            arrays |= {f"model{index}": output for index, output in enumerate(execution.outputs or ())}
            if execution.stopped is not None:
                text.append(f"call {number}: the model stops: {execution.stopped}")
        np.savez(place / f"call{number}.npz", **arrays)
    (place / "README.txt").write_text("\n".join(text) + "\n")
