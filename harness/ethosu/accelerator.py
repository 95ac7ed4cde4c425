"""The Ethos-U configurations: MAC count and the sizes that follow from it.

*Microblocks* (ublocks) are the blocks of output that the MAC array works on in one step; their
depth decides the order of weights. On U55 and U65 it follows from the MAC count, on U85 from
the command stream (ACC_FORMAT). Facts: s_EthosU55Configs in ethos_u55.cpp, s_EthosU65Configs in
ethos_u65.cpp and s_EthosU85Configs in ethos_u85.cpp of ethos-u-vela 5.1.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.case.errors import BadInput


@dataclass(frozen=True)
class Accelerator:
    """One configuration.

    :param family: ``u55``, ``u65`` or ``u85``.
    :param cores: streams that weights are dealt over.
    :param ifm_ublock_depth: input channels of a microblock (U55 and U65; U85 has its own rules).
    :param ofm_ublock_depth: output channels of a microblock (the same).
    :param shram_banks: KiB of SHRAM (U55 and U65); LUTs are in its last 2 KiB.
    """

    name: str
    family: str
    macs: int
    cores: int
    ifm_ublock_depth: int = 0
    ofm_ublock_depth: int = 0
    shram_banks: int = 0

    @property
    def u85(self) -> bool:
        return self.family == "u85"

    @property
    def shares_tables(self) -> bool:
        """No SHRAM is reserved for tables: accumulators of kernels without one overwrite them (U55-32 and -64)."""
        return self.shram_banks == 16

    @property
    def lut_memory(self) -> int:
        """Bytes of the memory that DMA reaches with region mode INTERNAL."""
        return 2048 if self.u85 else self.shram_banks * 1024


_ALL = (
    Accelerator("ethos-u55-32", "u55", 32, 1, 8, 4, 16),
    Accelerator("ethos-u55-64", "u55", 64, 1, 8, 8, 16),
    Accelerator("ethos-u55-128", "u55", 128, 1, 8, 8, 24),
    Accelerator("ethos-u55-256", "u55", 256, 1, 8, 8, 48),
    Accelerator("ethos-u65-256", "u65", 256, 1, 8, 8, 48),
    Accelerator("ethos-u65-512", "u65", 512, 2, 8, 8, 48),
    Accelerator("ethos-u85-128", "u85", 128, 1),
    Accelerator("ethos-u85-256", "u85", 256, 1),
    Accelerator("ethos-u85-512", "u85", 512, 2),
    Accelerator("ethos-u85-1024", "u85", 1024, 4),
    Accelerator("ethos-u85-2048", "u85", 2048, 4),
)
ACCELERATORS = {item.name: item for item in _ALL}


def accelerator_named(name: str) -> Accelerator:
    """The configuration of a target name.

    :raises BadInput: naming those that exist.
    """
    if name not in ACCELERATORS:
        raise BadInput("accelerator", f"unknown {name!r}", "use one of " + ", ".join(ACCELERATORS))
    return ACCELERATORS[name]


def in_turn(names: Sequence[str]) -> tuple[str, ...]:
    """One round of accelerators: families take turns, and the sizes of a family among themselves.

    :param names: each once.
    :returns: as many of each family, and within it as many of each size.
    """
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(accelerator_named(name).family, []).append(name)
    length = math.lcm(*map(len, families.values()))
    return tuple(sizes[turn % len(sizes)] for turn in range(length) for sizes in families.values())
