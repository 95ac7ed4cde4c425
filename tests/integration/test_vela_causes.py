"""How findings become root causes: reductions in children, as many at a time as are asked for."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from harness.reports.vela import concluding
from harness.tosa.causes import Cause, Causes
from harness.tosa.program import Operator, Program
from harness.tosa.tally import VelaTally
from harness.triage.findings import Finding

PROGRAM = Program((), (Operator("REDUCE_MAX", ("x0",), ("v0",)), Operator("PAD", ("v0",), ("v1",))), ("x0",), ("v1",))


def finding(**words) -> Finding:
    return Finding(
        **{
            "bucket": "v1/numeric/differs-from-the-TOSA-reference/run/Vela/ethos-u55/PAD",
            "oracle": "numeric",
            "kind": "differs from the TOSA reference",
            "target": "ethos-u55-128",
            "stage": "run",
            "message": "",
            "case": "a",
            **words,
        }
    )


def cause(text: str, found: Finding | None = None) -> Cause:
    return Cause(text, PROGRAM, found or finding(), ("ethos-u55-128",), {"5.1.0": "yes"}, 1, 0.1, True)


class Reducing:
    """Knows the cause of each case; ``before`` is called in the child."""

    def __init__(self, causes: dict[str, Cause | None], before: Callable[[str], None] = lambda case: None) -> None:
        self.causes, self.before = causes, before

    def cause(self, program: Program, found: Finding) -> Cause | None:
        self.before(found.case)
        return self.causes[found.case]


def told(
    reducing: Reducing, chains: dict[str, tuple[str, ...]], until: float = float("inf"), jobs: int = 1
) -> tuple[Causes, list[str]]:
    """The causes, and what was said to be reduced."""
    said: list[str] = []
    run = Causes([finding(case=case, chain=chain) for case, chain in chains.items()], dict.fromkeys(chains, PROGRAM))
    run.tell(reducing, until, said.append, jobs)
    return run, said


CHAIN = ("REDUCE_MAX", "PAD")
KNOWN = msgspec.structs.replace(finding(), state="known", entry="an-entry", proof="a condition holds")


def test_what_looks_like_a_new_cause_is_put_with_it_and_what_looks_otherwise_is_reduced():
    new = cause("values: this")
    chains = {"a": CHAIN, "b": ("REDUCE_MAX", "CONCAT", "PAD"), "c": ("PAD",), "d": ("TILE", *CHAIN)}
    run, said = told(Reducing({"a": new, "c": new}), chains)
    assert said == [
        "reducing finding 1 of 4: REDUCE_MAX -> PAD on ethos-u55-128",
        "reducing finding 3 of 4: PAD on ethos-u55-128",
    ]
    assert {text: [item.case for item in one.shown_by] for text, one in run.found.items()} == {
        "values: this": ["a", "b", "c", "d"]
    }
    assert not any(item.known for item in run.findings)


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_finding_of_a_known_cause_is_reduced_for_its_proof(jobs: int):
    known = cause("values: this", KNOWN)
    run, said = told(
        Reducing({"a": known, "b": known, "c": cause("values: that"), "d": None}),
        {"a": CHAIN, "b": CHAIN, "c": ("TILE", "SLICE"), "d": ("RESHAPE",)},
        jobs=jobs,
    )
    assert len(said) == 4
    assert [item.state for item in run.findings] == ["known", "known", "new", "new"]
    assert run.findings[1].proof == "reduced to 2 operators: a condition holds"
    assert len(run.found) == 2


def test_a_cause_that_resembles_a_known_bug_says_so_and_counts():
    like = msgspec.structs.replace(finding(), state="resembling", entry="an-entry")
    run, _ = told(Reducing({"a": cause("values: this", like)}), {"a": CHAIN})
    assert [(item.state, item.entry) for item in run.findings] == [("resembling", "an-entry")]
    first, second = concluding(VelaTally([], findings=run.findings), run)
    assert first == "0 programs, 1 finding: 0 known bugs, 0 new, 1 resembling a known one"
    assert second.startswith("  resembling an-entry: numeric-reducemax-pad-")


def test_the_first_of_each_bucket_comes_before_the_second_of_any():
    buckets = {"a": "PAD", "b": "PAD", "c": "SLICE", "d": "PAD"}
    found = [
        finding(case=case, chain=(op,), bucket=f"v1/numeric/differs/run/Vela/u55/{op}") for case, op in buckets.items()
    ]
    run, said = Causes(found, dict.fromkeys(buckets, PROGRAM)), list[str]()
    run.tell(Reducing(dict.fromkeys(buckets)), float("inf"), said.append)
    assert [text.split()[-3] for text in said] == ["PAD", "SLICE", "PAD", "PAD"]


def test_what_the_time_is_too_short_for_is_counted():
    run, said = told(Reducing({}), {"a": ("PAD",), "b": ("TILE",)}, until=0.0)
    assert (run.left, said) == (2, [])


def meets_the_other(folder: Path, case: str) -> None:
    """Wait until both are here, which needs them at the same time."""
    (folder / case).touch()
    until = time.monotonic() + 20
    while len([*folder.iterdir()]) < 2:
        assert time.monotonic() < until, "the other reduction never began"
        time.sleep(0.01)


def test_reductions_run_side_by_side(tmp_path: Path):
    causes = {case: cause(f"values: {case}") for case in "ab"}
    run, _ = told(Reducing(causes, partial(meets_the_other, tmp_path)), {"a": ("PAD",), "b": ("TILE",)}, jobs=2)
    assert sorted(run.found) == ["values: a", "values: b"]


def test_what_looks_like_a_finding_that_is_being_reduced_waits_for_its_cause(tmp_path: Path):
    causes = {case: cause(f"values: {case}") for case in "ac"}
    chains = {"a": CHAIN, "b": ("TILE", *CHAIN), "c": ("SLICE",)}
    run, said = told(Reducing(causes, partial(meets_the_other, tmp_path)), chains, jobs=2)
    assert len(said) == 2
    assert sorted(item.case for one in run.found.values() for item in one.shown_by) == ["a", "b", "c"]


def test_a_reduction_that_fails_costs_its_finding_alone(capfd):
    run, said = told(Reducing({"b": cause("values: this")}), {"a": ("PAD",), "b": ("TILE", "SLICE")})
    assert (run.left, [*run.found]) == (1, ["values: this"])
    assert "a reduction ended with exit 1, and its finding is not reduced: report what is above" in said
    assert "KeyError: 'a'" in capfd.readouterr().err
