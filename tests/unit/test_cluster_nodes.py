"""Who is there and who has a free place; what a parcel holds. No cluster, no processes."""

import threading

import msgspec
import pytest

from generators.cases import draw_block
from harness.campaign.campaign import write_case
from harness.case.errors import CannotRun
from harness.case.reading import read_case
from harness.triage.findings import Finding
from harness.workers.cluster.nodes import Nodes
from harness.workers.cluster.parcel import (
    Identity,
    Unable,
    difference,
    laid_out,
    own_identity,
    pack,
    packed_reply,
    unpack,
    unpacked_reply,
)
from harness.workers.protocol import CaseResult, Task

A, B = "tcp://a:1", "tcp://b:1"
[CASE] = draw_block(0, 0, 1, ("TOSA-1.0+INT",))[0]


def nodes(**threads):
    made = Nodes(patience=0.0)
    addresses = {f"tcp://{name}:1": count for name, count in threads.items()}
    made.see(addresses)
    for address in addresses:
        made.accept(address)
    return made


def test_a_place_is_on_the_node_with_the_fewest_cases():
    there = nodes(a=2, b=1)
    assert there.places == 3
    assert [there.take() for _ in range(3)] == [A, B, A]
    there.give(B)
    assert there.take() == B


def test_a_node_gets_no_case_before_it_is_accepted_and_none_when_it_is_refused():
    there = nodes(b=1)
    assert there.see({A: 4, B: 1}) == ([A], [])
    assert there.accepted() == [B]
    assert there.refuse(A, "node a is refused: torch")
    assert not there.refuse(A, "again")
    there.accept(A)
    assert there.accepted() == [B]
    assert there.see({A: 4, B: 1}) == ([], [])


def test_a_lost_node_has_no_places_and_is_new_when_it_comes_back():
    there = nodes(a=1, b=1)
    assert there.take() == A
    assert there.see({B: 1}) == ([], [A])
    assert not there.is_there(A)
    assert there.take() == B
    there.give(A)  # what ran there gives back a place that is gone
    assert there.see({A: 1, B: 1}) == ([A], [])
    there.accept(A)
    assert there.take() == A


def test_who_waits_gets_the_place_that_becomes_free():
    there, got = nodes(a=1), []
    there.take()
    there.patience = 60.0
    waiting = threading.Thread(target=lambda: got.append(there.take()))
    waiting.start()
    there.give(A)
    waiting.join(60)
    assert got == [A]


def test_without_nodes_waiting_ends_with_what_to_do():
    there = nodes()
    with pytest.raises(CannotRun, match=r"no node of the cluster is left .* go on with --resume"):
        there.take()
    there.see({A: 1})
    there.refuse(A, "node a is refused: torch")
    with pytest.raises(CannotRun, match="node a is refused: torch"):
        there.take()


def test_an_end_wakes_everybody_with_its_first_reason():
    there = nodes()
    there.end(CannotRun("first"))
    there.end(CannotRun("second"))
    for ask in (there.take, there.check):
        with pytest.raises(CannotRun, match="first"):
            ask()


def test_nodes_are_settled_when_each_is_accepted_or_refused():
    there = Nodes()
    there.see({A: 1, B: 1})
    assert not there.settled(0.0)
    there.accept(A)
    there.refuse(B, "no")
    assert there.settled(0.0)


def test_identities_differ_in_the_first_thing_that_differs():
    here = Identity(armdiff="1", releases={"executorch": "1.5.1", "torch": "2.13.0"})
    assert difference(here, here) is None
    assert difference(here, Identity(armdiff="2", releases=here.releases)) == "armdiff is 2 there and 1 here"
    older = Identity(armdiff="1", releases={"executorch": "1.5.1", "torch": "2.11.0"})
    assert difference(here, older) == "torch is 2.11.0 there and 2.13.0 here"
    less = Identity(armdiff="1", releases={"executorch": "1.5.1"})
    assert difference(here, less) == "torch is not installed there and 2.13.0 here"
    assert difference(less, here) == "torch is 2.13.0 there and not installed here"


def test_an_identity_knows_the_sources():
    assert own_identity() is own_identity()
    assert "sources" in own_identity().armdiff


def test_a_parcel_holds_all_that_a_case_needs(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    case = msgspec.structs.replace(CASE, tensors="weights.safetensors")
    file = write_case(case, here)
    (here / "weights.safetensors").write_bytes(b"\0weights")
    task = Task(case=str(file), corrections=("some",), confirmed=("bucket",))
    arrived = unpack(pack(task, "campaign", "harness.workers.worker", 7.0))
    assert (arrived.campaign, arrived.worker, arrived.seconds, arrived.task) == (
        "campaign",
        "harness.workers.worker",
        7.0,
        task,
    )
    laid = laid_out(arrived, there)
    assert laid == msgspec.structs.replace(task, case=str(there / file.name))
    assert read_case(there / file.name) == case
    assert (there / "weights.safetensors").read_bytes() == b"\0weights"


def test_a_parcel_writes_nothing_outside_its_folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    parcel = unpack(pack(Task(case=str(write_case(CASE, tmp_path))), "campaign", "harness.workers.worker", 7.0))
    laid_out(msgspec.structs.replace(parcel, tensors=("../escaped", b"x")), folder)
    assert not (tmp_path / "escaped").exists()
    assert (folder / "escaped").exists()


def test_a_folder_of_a_case_travels_too(tmp_path):
    (tmp_path / "entry").mkdir()
    write_case(CASE, tmp_path).rename(tmp_path / "entry" / "case.json")
    laid = laid_out(unpack(pack(Task(case=str(tmp_path / "entry")), "c", "w", 1.0)), tmp_path)
    assert read_case(tmp_path / "entry.json") == CASE
    assert laid.case == str(tmp_path / "entry.json")


def test_a_case_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(CannotRun, match=r"gone\.json: cannot be read \(No such file or directory\); restore the file"):
        pack(Task(case=str(tmp_path / "gone.json")), "c", "w", 1.0)


def test_a_reply_names_the_campaigns_path_wherever_it_names_the_nodes():
    finding = Finding(
        bucket="b",
        oracle="crash",
        kind="k",
        stage="lower",
        pass_name="*",
        target="TOSA-1.0+INT",
        legs=(),
        message="/there/x.json: broken",
        measured={},
        case="/there/x.json",
    )
    result = CaseResult(case="/there/x.json", findings=(finding,), legs={"eager": "ran"}, seconds={"lower": 1.5})
    back = unpacked_reply(packed_reply(result, "/there/x.json", "out/cases/x.json"))
    assert isinstance(back, CaseResult)
    assert (back.case, back.findings[0].case) == ("out/cases/x.json",) * 2
    assert back.findings[0].message == "out/cases/x.json: broken"
    assert (back.legs, back.seconds) == (result.legs, result.seconds)
    assert unpacked_reply(packed_reply(Unable("no disk"), "a", "a")) == Unable("no disk")
