"""Vela's compiler in this process: TOSA bytes in, the arrays of its ``.npz`` out, no files.

What Vela's command line makes of ``--accelerator-config``, ``--system-config`` and ``--memory-mode`` (a text for
regor, its C++ core) is taken from a run of the command line itself, once a configuration; later programs go straight
to ``regor.compile``. The same holds for the ``.npz``: Vela's own writer fills it, into memory.

Vela can end the process, hang, or ask for all memory: whoever compiles what nobody has compiled before does it in a
child (``harness.tosa.children``). Seen in ethos-u-vela 5.0.0 to 5.2.0: ``vela.process_regor`` calls ``regor.compile``
with architecture, network, format, system configuration and options, and hands its result to
``rawdata_writer.write_rawdata_output_from_model``.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from harness.compat.tosa_writer import WrittenOperator, WrittenTensor, write_tosa
from harness.compat.vela import VelaConfiguration, default_configuration


class VelaRefusal(RuntimeError):
    """Vela raised: it does not compile this program."""


class _Call(NamedTuple):
    """What the command line passes to ``regor.compile`` beside the network."""

    architecture: str
    system_config: str
    options: str


def compile_tosa(tosa: bytes, configuration: VelaConfiguration | str) -> Mapping[str, Any]:
    """Compile a flatbuffer.

    :param configuration: an accelerator's name stands for what ExecuTorch uses for it.
    :returns: arrays by name, as ``harness.artifacts.npz.payload_of_npz`` reads them.
    :raises VelaRefusal: with Vela's own words.
    """
    from ethosu import regor

    chosen = default_configuration(configuration) if isinstance(configuration, str) else configuration
    call = _command_line(chosen)
    try:
        model = regor.compile(call.architecture, tosa, "TOSA", call.system_config, options=call.options, verbose=False)
    except RuntimeError as error:
        raise VelaRefusal(" ".join(str(error).split())) from None
    return _arrays(model)


def _arrays(model: Any) -> Mapping[str, Any]:
    """What Vela's own writer would store."""
    from ethosu.vela import rawdata_writer

    kept: dict[str, Any] = {}
    with patch.object(rawdata_writer.np, "savez", lambda _, **arrays: kept.update(arrays)):
        rawdata_writer.write_rawdata_output_from_model("", model)
    return kept


@cache
def _command_line(configuration: VelaConfiguration) -> _Call:
    """Run Vela's command line on a program of one operator and note what it passes on."""
    from ethosu import regor
    from ethosu.vela import vela

    noted: list[_Call] = []
    compile_it = regor.compile

    def noting(architecture: str, network: Any, form: str, system: str, options: str = "", **more: Any) -> Any:
        noted.append(_Call(architecture, system, options))
        return compile_it(architecture, network, form, system, options=options, **more)

    with tempfile.TemporaryDirectory() as folder, patch.object(regor, "compile", noting), _quiet():
        file = Path(folder, "out.tosa")
        file.write_bytes(_smallest())
        vela.main(
            [
                f"--accelerator-config={configuration.target}",
                "--config=Arm/vela.ini",
                "--output-format=raw",
                f"--system-config={configuration.system_config}",
                f"--memory-mode={configuration.memory_mode}",
                f"--output-dir={folder}",
                str(file),
            ]
        )
    return noted[0]


def _smallest() -> bytes:
    tensors = [WrittenTensor(name, (1,), "INT8", None) for name in ("x", "y")]
    clamp = {"MinVal": (0,), "MaxVal": (1,), "NanMode": 1}
    return write_tosa(tensors, [WrittenOperator("CLAMP", ["x"], ["y"], clamp)], ["x"], ["y"])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Vela's command line prints a summary."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
