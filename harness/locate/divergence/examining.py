"""What can be read from a stream once it ran, added to a comparison."""

from __future__ import annotations

from dataclasses import replace

from harness.artifacts.vela import VelaPayload
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks import examine
from harness.ethosu.commands import decode_commands
from harness.locate.divergence.comparing import DelegateComparison
from harness.locate.divergence.origin import step_facts


def examined(comparison: DelegateComparison, payload: VelaPayload, accelerator: Accelerator) -> DelegateComparison:
    """With what can be read from the stream; without the steps, which are large."""
    if comparison.stopped and not comparison.steps:
        return comparison
    found = examine(comparison.steps, decode_commands(payload.commands, accelerator), accelerator)
    # memory that nothing wrote holds a pattern, so reading it without any effect on outputs is harmless
    harmless = comparison.difference is None and not comparison.stopped
    issues = [
        replace(issue, certain=False) if harmless and issue.kind == "unwritten-read" else issue
        for issue in (*comparison.issues, *found)
    ]
    told = {issue.step for issue in issues if issue.certain}
    facts = {step.index: step_facts(step, accelerator) for step in comparison.steps if step.index in told}
    return replace(comparison, issues=tuple(issues), steps=(), step_facts=facts)
