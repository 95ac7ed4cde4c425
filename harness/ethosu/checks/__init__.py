"""Everything that can be said of a stream by reading it, once it was executed.

``examine`` gathers the static checks over the executed steps: hazards, overlaps of IFM and OFM,
operations emitted twice, register limits, reserved bits. The issues of execution itself are in
``Execution.issues``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.duplicates import duplicates
from harness.ethosu.checks.hazards import hazards
from harness.ethosu.checks.overlap import chain_overlaps, overlaps
from harness.ethosu.checks.registers import register_limits
from harness.ethosu.commands import reserved_bits
from harness.ethosu.records import Command, Step, StreamIssue


def examine(steps: Sequence[Step], commands: Sequence[Command], accelerator: Accelerator) -> tuple[StreamIssue, ...]:
    """Issues of a stream, in the order of the stream where they have a place in it.

    :param steps: what ``execute`` returned.
    :param commands: the whole stream.
    """
    found = [*hazards(steps, accelerator), *duplicates(steps, accelerator), *chain_overlaps(steps, accelerator)]
    for step in steps:
        found += [*overlaps(step, accelerator), *register_limits(step, accelerator)]
    for command in commands:
        if extra := reserved_bits(command, accelerator):
            message = f"{command.name} has reserved bits {extra:#x}, which must be zero"
            found.append(StreamIssue("reserved-bits", message, command.name, None, command.offset))
    return tuple(sorted(found, key=lambda issue: -1 if issue.offset is None else issue.offset))
