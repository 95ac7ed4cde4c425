"""The Vela engine on real programs: what is drawn is valid, clean ones pass, planted faults and deaths are found."""

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from click.testing import CliRunner

from generators.programs import draw_programs
from generators.tosa_graph import TosaGraph
from harness.artifacts.vela import VelaPayload
from harness.case.arrays import Array
from harness.cli.command import main
from harness.ethosu.accelerator import accelerator_named
from harness.pipeline.legs.tosa_reference import run_flatbuffer
from harness.reports.vela import concluding
from harness.tosa.causes import Causes
from harness.tosa.compiling import VelaRefusal, compile_flatbuffer
from harness.tosa.engine import BLOCK, Plan, run
from harness.tosa.judging import Judged, judge
from harness.tosa.program import Fill, Operator, Program, Tensor, encode
from harness.tosa.tally import VelaTally
from harness.tosa.translating import from_flatbuffer, to_flatbuffer
from harness.triage.corpus import corpus_folders, default_corpus, entries

CLAMP = Program(
    (Tensor("x", (1, 4, 4, 8), "INT8"), Tensor("y", (1, 4, 4, 8), "INT8")),
    (Operator("CLAMP", ("x",), ("y",), {"MinVal": (251,), "MaxVal": (20,), "NanMode": 1}),),
    ("x",),
    ("y",),
)
ACCELERATORS = ("ethos-u55-128", "ethos-u85-256")


def drawn(block: int) -> tuple[str, list[Program]]:
    accelerator = ACCELERATORS[block % 2]
    return accelerator, draw_programs(2, block, BLOCK, accelerator_named(accelerator).family)


def test_a_hundred_programs_are_valid_and_nearly_all_clean():
    tally = VelaTally(entries(corpus_folders()))
    for result in run(Plan(drawn, jobs=1, most=100)):
        tally.add(result)
    assert tally.programs == {"ethos-u55-128": 60, "ethos-u85-256": 40}
    assert tally.outcomes["invalid"] == 0
    assert tally.outcomes["clean"] >= 90
    assert tally.judged >= 95


def planted(change) -> object:
    """Vela with a fault in the words of every stream."""

    def compile_it(tosa: bytes, accelerator: str) -> VelaPayload:
        payload = compile_flatbuffer(tosa, accelerator)
        return replace(payload, commands=change(payload.commands))

    return compile_it


def lower_maximum(commands: bytes) -> bytes:
    """NPU_SET_ACTIVATION_MAX (opcode 0x127) with the parameter 20 becomes 19."""
    right, wrong = (value.to_bytes(2, "little") for value in (20, 19))
    assert commands.count(b"\x27\x01" + right) == 1
    return commands.replace(b"\x27\x01" + right, b"\x27\x01" + wrong)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_planted_bound_is_found_at_its_operator_and_the_clean_program_passes(accelerator: str):
    assert judge(CLAMP, accelerator).outcome == "clean"
    found = judge(CLAMP, accelerator, compile_tosa=planted(lower_maximum))
    assert found.outcome == "finding"
    [mismatch] = found.mismatches
    assert (mismatch.oracle, mismatch.kind, mismatch.signature) == (
        "numeric",
        "differs from the TOSA reference",
        "CLAMP",
    )
    assert "19 where the reference has 20" in mismatch.message


@pytest.mark.parametrize(("twice", "compilations"), [(True, 4), (False, 1)])
def test_a_guess_takes_one_compilation_and_a_finding_four(twice: bool, compilations: int):
    asked = []

    def compile_it(tosa: bytes, accelerator: str) -> VelaPayload:
        asked.append(tosa)
        return planted(lower_maximum)(tosa, accelerator)

    found = judge(CLAMP, "ethos-u55-128", compile_tosa=compile_it, twice=twice)
    assert [item.oracle for item in found.mismatches] == ["numeric"]
    assert len(asked) == compilations


def test_two_compilations_that_differ_are_a_finding():
    bounds = iter([20, 19] * 4)

    def changing(commands: bytes) -> bytes:
        return commands.replace(b"\x27\x01\x14\x00", b"\x27\x01" + next(bounds).to_bytes(2, "little"))

    found = judge(CLAMP, "ethos-u55-128", compile_tosa=planted(changing))
    assert [(item.oracle, item.kind) for item in found.mismatches] == [("deterministic", "payload differs")]


def refusing(tosa: bytes, accelerator: str) -> VelaPayload:
    raise VelaRefusal("Non-passthrough operation (Clamp) could not run on NPU")


def test_a_refusal_of_what_vela_lists_is_a_finding_and_of_what_it_does_not_list_is_counted():
    found = judge(CLAMP, "ethos-u55-128", compile_tosa=refusing)
    assert found.outcome == "finding"
    [mismatch] = found.mismatches
    assert (mismatch.oracle, mismatch.stage, str(mismatch.place)) == ("crash", "vela", "INPUT -> [CLAMP]")
    table = Program(
        (Tensor("x", (1, 4), "INT16"), Tensor("t", (513,), "INT16", Fill("same", 7, 7)), Tensor("y", (1, 4), "INT32")),
        (Operator("TABLE", ("x", "t"), ("y",)),),
        ("x",),
        ("y",),
    )
    found = judge(table, "ethos-u55-128", compile_tosa=refusing)
    assert (found.outcome, found.mismatches) == ("refused", ())
    assert found.why.endswith("(beyond Vela's list, TABLE: INT16)")


def test_a_refusal_of_an_invalid_program_says_nothing():
    wrong = msgspec.structs.replace(CLAMP, tensors=(CLAMP.tensors[0], Tensor("y", (1, 4, 4, 7), "INT8")))
    assert judge(wrong, "ethos-u55-128", compile_tosa=refusing).outcome == "invalid"


def dying(how: str):
    """A judge that dies of the second program of each block, where Vela would."""

    def judged(program: Program, accelerator: str, seed: int, *, announce) -> Judged:
        announce("vela")
        if program.inputs == ("bad",):
            if how == "Hang":
                time.sleep(60)
            os.kill(os.getpid(), getattr(signal, how))
        return Judged("clean")

    return judged


@pytest.mark.parametrize("how", ["SIGSEGV", "Hang"])
def test_a_death_of_vela_is_one_finding_and_the_rest_goes_on(how: str):
    bad = Program(
        (Tensor("bad", (1,), "INT8"), Tensor("y", (1,), "INT8")),
        (Operator("IDENTITY", ("bad",), ("y",)),),
        ("bad",),
        ("y",),
    )
    plan = Plan(lambda block: ("ethos-u55-128", [CLAMP, bad, CLAMP]), most=3, judge=dying(how), patience=2.0)
    found = {result.place: result for result in run(plan) if result.accelerator}
    assert [found[place].outcome for place in range(3)] == ["clean", "finding", "clean"]
    [finding] = found[1].findings
    assert finding.bucket == f"v1/crash/exception/vela/-/ethos-u55/{how}|no-native-output|-"
    assert str(finding.place) == "INPUT -> [IDENTITY]"


def test_the_verb_judges_a_file_and_says_so_in_json(tmp_path):
    file = tmp_path / "program.json"
    file.write_bytes(encode(CLAMP))
    words = ["vela", str(file), "--accelerator", "ethos-u55-128", "--out", str(tmp_path), "--json", "-", "--jobs", "1"]
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 0
    data = json.loads(answer.stdout)
    assert (data["outcomes"], data["findings"]) == ({"clean": 1}, [])


def test_the_verb_refuses_what_is_no_program(tmp_path):
    file = tmp_path / "program.json"
    file.write_text("{}")
    answer = CliRunner().invoke(main, ["vela", str(file)])
    assert answer.exit_code == 2
    assert "program.json" in answer.stderr


def test_the_benchmark_counts_its_programs_and_says_what_each_stage_takes():
    words = [
        "bench",
        "--vela",
        "20",
        "--target",
        "ethos-u85-256",
        "--target",
        "TOSA-1.0+INT",
        "--jobs",
        "1",
        "--json",
        "-",
    ]
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 0, answer.stderr
    [row] = json.loads(answer.stdout)["rows"]
    assert (row["accelerator"], row["jobs"], row["programs"]) == ("ethos-u85-256", 1, 20)
    assert {"draw", "write", "vela", "reference", "run", "checks"} <= set(row["stages"])
    assert row["ms_each"] > 0


def test_the_verb_mutates_what_it_is_given(tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "a.tosa").write_bytes(to_flatbuffer(CLAMP))
    (tmp_path / "some" / "damaged.tosa").write_bytes(b"nothing")
    words = ["vela", "--from", str(tmp_path / "some"), "--accelerator", "ethos-u55-128", "--max-programs", "20"]
    words += ["--out", str(tmp_path), "--json", "-", "--jobs", "1", "--no-minimize"]
    answers = [CliRunner().invoke(main, words) for _ in range(2)]
    data = [json.loads(answer.stdout) for answer in answers]
    assert data[0]["programs"] == {"ethos-u55-128": 20}
    assert data[0]["outcomes"] == data[1]["outcomes"]
    assert data[0]["outcomes"]["clean"] >= 5


def test_a_folder_without_graphs_is_refused(tmp_path):
    answer = CliRunner().invoke(main, ["vela", "--from", str(tmp_path)])
    assert answer.exit_code == 2
    assert "holds no TOSA graph" in answer.stderr


def test_vela_s_death_of_an_invalid_program_says_nothing(monkeypatch):
    """The reference model is asked first, and once: a CLAMP whose result has another shape."""
    asked = []

    def reference(tosa: bytes, arrays: Sequence[Array]) -> list[Array]:
        asked.append(arrays)
        return run_flatbuffer(tosa, arrays)

    monkeypatch.setattr("harness.tosa.judging.run_flatbuffer", reference)
    wrong = msgspec.structs.replace(CLAMP, tensors=(CLAMP.tensors[0], Tensor("y", (1, 4, 4, 7), "INT8")))

    def compile_it(tosa: bytes, accelerator: str) -> VelaPayload:
        raise AssertionError("Vela is not asked")

    found = judge(wrong, "ethos-u55-128", compile_tosa=compile_it, vetted=False)
    assert found.outcome == "invalid"
    assert len(asked) == 1


@pytest.mark.parametrize(("span", "outcome"), [(1 << 20, "invalid"), (1 << 15, "clean")])
def test_a_product_that_leaves_32_bits_is_not_judged(span, outcome):
    """The reference keeps its low bits, the NPU rescales it whole; no lowering has one, but a cut may make it."""
    graph = TosaGraph("u85")
    x = graph.input((1, 1, 4), "INT32", (-span, span))
    product = graph.add("MUL", [x, x, graph.scalar(0, "INT8")], x.shape, "INT32")
    graph.rescale(product, "INT8", [2.0**-12])
    for twice in (True, False):
        assert judge(graph.program(), "ethos-u85-256", twice=twice).outcome == outcome


def test_the_last_lines_name_bugs_by_root_cause_and_the_versions_that_have_them(tmp_path):
    file = default_corpus() / "found" / "vela-u55-amax-into-slice" / "smallest.tosa"
    words = ["vela", str(file), "--accelerator", "ethos-u55-128", "--out", str(tmp_path), "--jobs", "1"]
    [*_, first, known, last] = CliRunner().invoke(main, words).stdout.splitlines()
    assert first.startswith("1 program, ")
    assert first.endswith(": 1 known bug, 0 new")
    assert known.startswith("  known: vela-u55-amax-into-slice ")
    assert last == "nothing new in 1 program"


def test_findings_that_were_not_reduced_are_no_silence(tmp_path):
    """Without reduction no root cause is told: the last lines say how many findings are left."""
    [entry] = entries([default_corpus() / "found" / "vela-u55-amax-into-slice"])
    bare = msgspec.structs.replace(entry, status=msgspec.structs.replace(entry.status, conditions=()))
    program = from_flatbuffer((bare.folder / "smallest.tosa").read_bytes())
    tally = VelaTally([bare])
    for result in run(Plan(lambda _: ("ethos-u55-128", [program]), most=1)):
        tally.add(result)
    [first] = concluding(tally, Causes(tally.findings, tally.smallest))
    assert first == "1 program, 1 finding: 0 known bugs, 0 new, 1 finding not reduced"
