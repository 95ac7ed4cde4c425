"""The command that shows a finding again: ``armdiff replay CASE`` with the options that it takes.

A listing, a report and a bug's page name a case; whoever reads one wants to run it. An option is named only if
the finding may not show without it: corrections, the engine, and all probes where a probe's oracle found it. With
default probes nothing needs to be said: whether one of them runs is a function of the case.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from harness.corrections import chosen
from harness.evidence.observation import oracle_named
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode


@dataclass(frozen=True)
class Again:
    """The options under which findings were made.

    :param corrections: names or files of the corrections that applied.
    """

    corrections: tuple[str, ...] = ()
    engine: EngineChoice = "default"
    probes: ProbeMode = "default"

    def command(self, case: str | Path, oracle: str) -> str:
        """The command line for a finding of an oracle, quoted for a shell."""
        words = ["armdiff", "replay", str(case)]
        every = self.corrections and {*self.corrections} == {item.name for item in chosen(("all",))}
        for name in ("all",) if every else self.corrections:
            words += ["--correction", name]
        if self.engine != "default":
            words += ["--ethos-u-engine", self.engine]
        if self.probes == "all" and oracle_named(oracle).probed:
            words += ["--probes", "all"]
        return shlex.join(words)
