"""What a program is compiled for: accelerator, system configuration and memory mode, as Vela spells them.

``EthosUCompileSpec(target)`` fills in the last two, and hands all three to Vela as flags that stay
in each delegate's compile specification (key ``compile_flags``). A runner ELF is built with the same
three words, so both sides are a ``VelaConfiguration`` and either fits or does not.

Source: ``backends/arm/ethosu/compile_spec.py`` of each release (1.1.0 to 1.5.1). Only Ethos-U65's
defaults changed between them; 1.1.0 has no U65 target. No torch import here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from harness.compat.releases import installed

_FLAG = re.compile(rb"--(accelerator-config|system-config|memory-mode)=(\S+)")


@dataclass(frozen=True)
class VelaConfiguration:
    """What a program was compiled for, or a runner was built for.

    :param target: accelerator configuration: ``ethos-u85-256``.
    :param system_config: a section of Vela's configuration file: ``Ethos_U85_SYS_DRAM_Mid``.
    :param memory_mode: ``Shared_Sram``, ``Sram_Only``, ``Dedicated_Sram_384KB``, …
    """

    target: str
    system_config: str
    memory_mode: str

    def __str__(self) -> str:
        return f"{self.target} {self.system_config} {self.memory_mode}"


_U65 = {
    "1.2.0": ("Ethos_U65_SYS_DRAM_Mid", "Sram_Only"),
    "1.3.1": ("Ethos_U65_High_End", "Sram_Only"),
}


def default_configuration(target: str, executorch: str | None = None) -> VelaConfiguration:
    """What ``EthosUCompileSpec(target)`` means in a release of executorch.

    :param target: an Ethos-U target's name.
    :param executorch: its version; None stands for the installed one.
    """
    if target.startswith("ethos-u55"):
        words = ("Ethos_U55_High_End_Embedded", "Shared_Sram")
    elif target.startswith("ethos-u65"):
        version = installed().get("executorch", "") if executorch is None else executorch
        words = _U65.get(version, ("Ethos_U65_High_End", "Dedicated_Sram_384KB"))
    else:
        words = ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only")
    return VelaConfiguration(target, *words)


def configuration_of(module: Any) -> VelaConfiguration | None:
    """What one delegate was compiled for.

    :param module: a ``LoweredBackendModule``.
    :returns: None if its compile specification has no Vela flags (it is no Ethos-U delegate).
    """
    for spec in module.compile_specs:
        flags = {name: value.decode() for name, value in _FLAG.findall(bytes(spec.value))}
        if len(flags) == 3:
            return VelaConfiguration(flags[b"accelerator-config"], flags[b"system-config"], flags[b"memory-mode"])
    return None
