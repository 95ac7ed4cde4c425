"""Hand-made runs for tests of reports: drawn graphs, made-up findings, written as a campaign writes them."""

import datetime
import functools
from pathlib import Path

import msgspec

from generators.cases import draw_block
from harness.campaign.run_folder import Asked, Done, Minimized, RunInfo, append, read_run, write_info
from harness.case.case import Case, Constant, Distribution, Graph, Input, Node, case_digest, encode_case
from harness.compat.releases import line_named
from harness.evidence.inspection.surroundings import seen_place
from harness.evidence.observation import Unjudged
from harness.triage.buckets import any_family
from harness.triage.conditions import Condition
from harness.triage.corpus import Entry, Expectation, Status
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult

TARGETS = ("TOSA-1.0+INT", "ethos-u55-128")
FAMILIES = {"TOSA-1.0+INT": "tosa-int", "ethos-u55-128": "ethos-u55"}
LEGS = {"eager": "ran", "tosa-reference": "ran", "ethos-u-fvp": "no FVP here"}
HOSTILE = "<script>alert(1)</script>&\"'`|*_[x](javascript:1)\n# \x00\x1b[31m\u202e$"
UNIFORM = Distribution(kind="uniform", parameters={"high": 1.0, "low": -1.0})


@functools.cache
def drawn(count=6):
    """Graphs as a campaign draws them, each as one case a target."""
    return tuple(draw_block(3, 0, count, TARGETS))


def chain_case(*operators, target=TARGETS[0], **changes):
    """A case whose graph is a chain of operators without attributes."""
    nodes = tuple(
        Node(name=f"n{place}", operator=operator, inputs=(f"n{place - 1}" if place else "x",))
        for place, operator in enumerate(operators)
    )
    graph = Graph(inputs=(Input(name="x", shape=(1, 4)),), nodes=nodes, outputs=(f"n{len(nodes) - 1}",))
    return Case(graph=graph, calibration={"x": UNIFORM}, target=target, **changes)


def join_case(target=TARGETS[0]):
    """Two inputs, a constant, a split, and an output that needs only some of them."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 4)), Input(name="y", shape=(1, 2))),
            constants=(Constant(name="c", shape=(1, 2), kind="full", parameters={"value": 0.5}),),
            nodes=(
                Node(name="n0", operator="split", inputs=("x",), attributes={"sizes": [2, 2], "dim": 1}),
                Node(name="n1", operator="cat", inputs=("n0.1", "c", "n0.0"), attributes={"dim": 1}),
                Node(name="n2", operator="tanh", inputs=("y",)),
            ),
            outputs=("n1", "n2"),
        ),
        calibration={"x": UNIFORM, "y": Distribution(kind="zero")},
        recipe="a8w8,qmin=-127,float=n2",
        target=target,
    )


def finding(oracle="numeric", kind="outside rounding", *, blamed=None, target=TARGETS[0], signature="", **changes):
    """A finding in the bucket that these words make, at a place that says so."""
    stage = changes.pop("stage", "run")
    words = ("v1", oracle, kind.replace(" ", "-"), stage, blamed or "-", FAMILIES[target], signature)
    values = {
        "bucket": "/".join(words),
        "oracle": oracle,
        "kind": kind,
        "target": target,
        "stage": stage,
        "pass_name": blamed,
        "message": "3 of 4 elements are off",
        "chain": ("relu",),
        "recipe": "a8w8",
        "case": "",
        **changes,
    }
    values.setdefault("place", _place(values["bucket"], values["chain"]))
    return Finding(**values)


def _place(bucket, chain):
    return seen_place({"bucket": any_family(bucket), **dict.fromkeys(chain, 1)})


def entry(name, known, *, lines=("default",), operators=(), upstream=("https://example.org/1",)):
    """A corpus entry whose condition holds at the place of a finding."""
    terms = (f"bucket == {any_family(known.bucket)}", *(f"{operator} == 1" for operator in operators))
    shows = "/".join(known.bucket.split("/")[1:3])
    condition = Condition(path=(), at=terms, graph="aten", shows=(shows,))
    expected = {line: Expectation(status="reproduces", bucket=known.bucket) for line in lines}
    status = Status(
        title=f"title of {name}",
        upstream=upstream,
        expires=datetime.date(2999, 1, 1),
        operators=operators,
        conditions=(condition,),
        lines=expected,
    )
    return Entry(Path("corpus") / name, status)


def make_run(folder, cases=(), *, minimized=(), problems=(), left=(), state="done", line="default", **asked):
    """Write a run's folder and read it.

    :param cases: (case, result's fields) in the order of their numbers; a ``findings`` field is put at the case.
    """
    info = RunInfo(
        armdiff="0.1.0",
        releases=line_named(line).releases if line else {"executorch": "9"},
        line=line,
        asked=Asked(targets=asked.pop("targets", TARGETS), **asked),
        started=1_795_000_000.0,
        seconds=60.0,
        state=state,
        cases=None if state == "running" else len(cases),
        left=tuple(left),
        problems=tuple(problems),
    )
    write_info(folder, info)
    (folder / "cases").mkdir(exist_ok=True)
    done = []
    for number, (case, fields) in enumerate(cases):
        path = write(folder, case)
        found = tuple(
            msgspec.structs.replace(item, case=path, target=case.target) for item in fields.get("findings", ())
        )
        values = {"legs": LEGS, "seconds": {"lower": 1.0}, **fields, "findings": found}
        result = CaseResult(case=path, target=case.target, **values)
        done.append(Done(number=number, at=2.0 * (number + 1), result=result))
    append(folder, done)
    append(folder, list(minimized))
    return read_run(folder)


def write(folder, case):
    """Write a case where a campaign writes it; returns a path that need not exist any more when it is read."""
    name = f"{case_digest(case)}.json"
    (folder / "cases" / name).write_bytes(encode_case(case))
    return f"/gone/armdiff-out/cases/{name}"


def each_target(*operators, **fields):
    """One graph on every target, with the same result."""
    return [(chain_case(*operators, target=target), fields) for target in TARGETS]


def hostile_run(folder):
    """A run in which every text that comes from outside tries to leave its place."""
    found = finding(
        message=HOSTILE,
        detail=HOSTILE,
        chain=(HOSTILE, "relu"),
        recipe=HOSTILE,
        signature=HOSTILE.replace("/", ":"),
        measured={"distance": 3.0, "unit": HOSTILE},
    )
    crash = finding("crash", HOSTILE, stage=HOSTILE, blamed=HOSTILE.replace("/", ":"), measured={"type": HOSTILE})
    known = finding("qparams", "known", message=HOSTILE)
    hostile = Unjudged(what=HOSTILE, why=HOSTILE, leg="tosa-reference", outputs=(0,), parts=1, of=1, unit=HOSTILE)
    minimized = Minimized(
        bucket=found.bucket,
        final=f"{found.bucket}{HOSTILE}",
        origin=HOSTILE,
        case="bugs/b/case.json",
        operators=(HOSTILE,),
        state="minimized",
        neighbour=HOSTILE,
        distinguishes=HOSTILE,
        folder="../cases",
        repro=HOSTILE,
    )
    (folder / "bugs" / "b").mkdir(parents=True)
    (folder / "bugs" / "b" / "case.json").write_bytes(encode_case(chain_case("relu")))
    cases = [
        *each_target(
            "relu", findings=[found, crash, known], unrepeated=(found,), legs={"eager": HOSTILE}, unjudged=(hostile,)
        ),
        *each_target("tanh", invalid=HOSTILE, seconds={HOSTILE: 1.0}),
        *each_target("abs", problem=HOSTILE),
    ]
    run = make_run(folder, cases, minimized=[minimized], left=[HOSTILE], problems=[HOSTILE], corrections=(HOSTILE,))
    corpus = [entry(HOSTILE, known, upstream=("javascript:alert(1)", f"https://example.org/{HOSTILE}", HOSTILE))]
    return run, corpus
