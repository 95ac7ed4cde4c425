"""Which FVP simulates which Ethos-U family, and what its options are called.

Corstone-300 (SSE-300) carries an Ethos-U55 or U65, Corstone-320 (SSE-320) a U85. Names of binaries,
folders and options are those of ``runner_utils.py`` (``run_corstone``, ``_elf_path_candidates``);
the builds are those of ``backends/arm/test/setup_testing.sh`` (1.4.1 and 1.5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.case.target import Target
from harness.compat.vela import VelaConfiguration


@dataclass(frozen=True)
class Board:
    """One board.

    :param family: the Ethos-U family that it carries: ``ethos-u55``.
    :param binary: the FVP's name on PATH.
    :param folder: how upstream's build folders call the board: ``corstone-300``.
    :param subsystem: prefix of the options of CPU and NPU.
    :param options: options of every run, apart from MAC count, semihosting and program.
    :param built: what upstream's own test script builds the board's runner for.
    """

    family: str
    binary: str
    folder: str
    subsystem: str
    options: tuple[str, ...]
    built: VelaConfiguration

    @property
    def variable(self) -> str:
        """The part that names the family in armdiff's environment variables: ``U55``."""
        return self.family.removeprefix("ethos-").upper()


_SSE_300 = (
    "mps3_board.visualisation.disable-visualisation=1",
    "mps3_board.telnetterminal0.start_telnet=0",
    "mps3_board.uart0.out_file='-'",
)
_SSE_320 = (
    "mps4_board.visualisation.disable-visualisation=1",
    "vis_hdlcd.disable_visualisation=1",
    "mps4_board.telnetterminal0.start_telnet=0",
    "mps4_board.uart0.out_file='-'",
    "mps4_board.uart0.unbuffered_output=1",
    "mps4_board.uart0.shutdown_on_eot=1",
)
_ALL = (
    Board(
        "ethos-u55",
        "FVP_Corstone_SSE-300_Ethos-U55",
        "corstone-300",
        "",
        _SSE_300,
        VelaConfiguration("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram"),
    ),
    Board(
        "ethos-u65",
        "FVP_Corstone_SSE-300_Ethos-U65",
        "corstone-300-u65",
        "",
        _SSE_300,
        VelaConfiguration("ethos-u65-256", "Ethos_U65_High_End", "Dedicated_Sram_384KB"),
    ),
    Board(
        "ethos-u85",
        "FVP_Corstone_SSE-320",
        "corstone-320",
        "mps4_board.subsystem.",
        _SSE_320,
        VelaConfiguration("ethos-u85-128", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
    ),
)
BOARDS: Mapping[str, Board] = {board.family: board for board in _ALL}


def board_of(target: Target) -> Board:
    """The board of an Ethos-U target."""
    return BOARDS[target.family]


def macs_of(target: str) -> int:
    """The MAC count in a target's name: 128 for ``ethos-u55-128``."""
    return int(target.rpartition("-")[2])
