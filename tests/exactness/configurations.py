"""What Vela is told beside the program: accelerator, system configuration, memory mode, strategy.

Names of system configurations and memory modes are sections of ``Arm/vela.ini``, which comes with
Vela; the default of a family is the one that ExecuTorch's ``EthosUCompileSpec`` uses. Ethos-U55 has
no Dedicated_Sram (its second port has flash memory, Vela refuses the arena there).

Two strategies make Vela stripe and cascade where small graphs would not: ``Size``, and
``Performance`` with a small cache.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

TARGETS = (
    "ethos-u55-128",
    "ethos-u85-256",
    "ethos-u55-32",
    "ethos-u55-64",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u65-512",
    "ethos-u85-128",
    "ethos-u85-512",
    "ethos-u85-1024",
    "ethos-u85-2048",
)
_DEFAULTS = {
    "u55": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "u65": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
    "u85": ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
}
_OTHERS = {
    "u55": (("Sram_Only", "Performance", 0), ("Shared_Sram", "Size", 0), ("Shared_Sram", "Performance", 4096)),
    "u65": (
        ("Sram_Only", "Performance", 0),
        ("Shared_Sram", "Performance", 0),
        ("Dedicated_Sram", "Performance", 4096),
        ("Dedicated_Sram_384KB", "Size", 0),
    ),
    "u85": (
        ("Shared_Sram", "Performance", 0),
        ("Dedicated_Sram_384KB", "Performance", 0),
        ("Dedicated_Sram", "Performance", 4096),
        ("Sram_Only", "Size", 0),
    ),
}
_CASCADES = {
    "u55": (("Shared_Sram", "Size", 0), ("Shared_Sram", "Performance", 32768), ("Sram_Only", "Performance", 16384)),
    "u65": (("Shared_Sram", "Performance", 32768), ("Dedicated_Sram", "Performance", 32768), ("Sram_Only", "Size", 0)),
    "u85": (("Sram_Only", "Size", 0), ("Shared_Sram", "Performance", 32768), ("Dedicated_Sram", "Performance", 32768)),
}
"""What makes Vela cascade: short of memory, or told to save it."""


@dataclass(frozen=True)
class Configuration:
    """One way to call Vela.

    :param cache_size: bytes for ``--arena-cache-size``; 0 leaves it to the memory mode.
    """

    accelerator: str
    system: str
    memory_mode: str
    optimise: str = "Performance"
    cache_size: int = 0

    @property
    def options(self) -> list[str]:
        """Vela's command line, without files."""
        size = [f"--arena-cache-size={self.cache_size}"] if self.cache_size else []
        return [
            f"--accelerator-config={self.accelerator}",
            "--config=Arm/vela.ini",
            "--output-format=raw",
            f"--system-config={self.system}",
            f"--memory-mode={self.memory_mode}",
            f"--optimise={self.optimise}",
            *size,
        ]

    def __str__(self) -> str:
        size = f", cache {self.cache_size}" if self.cache_size else ""
        return f"{self.accelerator} {self.memory_mode} {self.optimise}{size}"


def default(accelerator: str) -> Configuration:
    """What ExecuTorch uses for an accelerator."""
    system, mode = _DEFAULTS[accelerator.split("-")[1]]
    return Configuration(accelerator, system, mode)


def configuration_for(program: str, accelerator: str) -> Configuration:
    """The configuration of one program: the default for about half, the others in turn."""
    family = accelerator.split("-")[1]
    others = _CASCADES[family] if program.startswith("cascade") else _OTHERS[family]
    choice = zlib.crc32(f"{program} {accelerator}".encode()) % (2 * len(others))
    if choice >= len(others):
        return default(accelerator)
    mode, optimise, size = others[choice]
    return Configuration(accelerator, default(accelerator).system, mode, optimise, size)
