"""A compiled program as its user sees it, a few lines a target: where it runs, how near to float it is, its size."""

from __future__ import annotations

from collections.abc import Iterator

from harness.case.call_sites import CallSites, node_called
from harness.case.target import parse_target
from harness.case.wording import counted_as
from harness.pipeline.profile import Error, Fallback, OutputError, Profile

SHOWN = 8
"""Outputs, and reasons for fallback, that are listed."""
KIB = 1024


def lines(target: str, profile: Profile, sites: CallSites) -> Iterator[str]:
    """The lines of one target, its name first."""
    ethos_u = parse_target(target).family.startswith("ethos")
    yield target
    yield f"  {_share(profile, 'on the NPU' if ethos_u else 'delegated')}"
    for item in profile.fallback[:SHOWN]:
        yield f"  on the CPU: {_fallback(item, sites)}"
    if len(profile.fallback) > SHOWN:
        yield f"  on the CPU: {counted_as(len(profile.fallback) - SHOWN, 'more reason')} (all are in the JSON)"
    for error in profile.errors[:SHOWN]:
        yield f"  {_output(error)}"
    if profile.errors:
        more = f"; {counted_as(len(profile.errors) - SHOWN, 'more output')} in the JSON" * (len(profile.errors) > SHOWN)
        yield f"  (of {profile.leg} against float eager, over {counted_as(profile.samples, 'sample')}{more})"
    yield f"  {_sizes(profile)}"
    if profile.cycles is not None and profile.clock:
        milliseconds = profile.cycles / profile.clock * 1000
        clock = f"{profile.clock / 1e6:.0f} MHz"
        yield f"  Vela's estimate: {profile.cycles:,} cycles an inference, {milliseconds:.3g} ms at {clock}"


def _share(profile: Profile, where: str) -> str:
    here, there = profile.operators
    work, rest = profile.macs
    text = f"{where}: {here} of {counted_as(here + there, 'operator')} ({_percent(here, here + there)})"
    if work + rest:
        text += f" and {_percent(work, work + rest)} of {_short(work + rest)} MACs"
    return f"{text}, in {counted_as(profile.delegates, 'delegate')}"


def _percent(part: int, whole: int) -> str:
    """Never rounded to all or nothing."""
    if part in (0, whole):
        return "100 %" if part else "0 %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def _short(number: int) -> str:
    for limit, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= limit:
            return f"{number / limit:.3g} {unit}"
    return str(number)


def _fallback(item: Fallback, sites: CallSites) -> str:
    places = dict.fromkeys(
        str(sites[name]) for name in (node_called(node, sites) for node in item.nodes) if name in sites
    )
    at = f" at {', '.join([*places][:3])}{' …' * (len(places) > 3)}" if places else ""
    count = f"{item.count} x " if item.count > 1 else ""
    return f"{count}{item.operator}{at}: {item.reason or 'the partitioner gave no reason'}"


def _output(error: OutputError) -> str:
    text = f"output {error.output} {list(error.shape)}: {_error(error.compiled)}"
    return text if error.quantized is None else f"{text}; quantization explains {_error(error.quantized)}"


def _error(error: Error) -> str:
    if error.largest == 0:
        return "no error"
    sqnr = "no SQNR (the output is zero)" if error.sqnr is None else f"SQNR {error.sqnr:.1f} dB"
    return f"{sqnr}, largest error {error.largest:.3g}, mean {error.mean:.3g}"


def _sizes(profile: Profile) -> str:
    if not profile.commands:
        return f"size: .pte {_kib(profile.program)}, flatbuffers {_kib(profile.payload)}"
    parts = f"commands {_kib(profile.commands)}, weights {_kib(profile.weights)}"
    sizes = f".pte {_kib(profile.program)}, payload {_kib(profile.payload)} ({parts})"
    return f"size: {sizes}; scratch {_kib(profile.scratch)}"


def _kib(number: int) -> str:
    return f"{number} B" if number < KIB else f"{number / KIB:.1f} KiB"
