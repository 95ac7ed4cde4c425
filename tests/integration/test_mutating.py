"""``fuzz --from``: a campaign of mutants of a model and of upstream's tests, and what is no source."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from generators.blocks import BLOCKS, draw_blocks
from generators.mutants import draw_mutants
from harness.campaign.campaign import Options
from harness.campaign.mutating import Parents, in_order
from harness.campaign.run_folder import read_run
from harness.case.reading import read_case
from harness.cli.command import main
from harness.workers.pool import Pool

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "seed001.py"


def test_a_model_is_captured_and_its_mutants_run(tmp_path, workers_forked):
    words = ["fuzz", "--from", str(EXAMPLE), "--max-examples", "4", "--target", "TOSA-1.0+INT", "--jobs", "1"]
    answer = CliRunner().invoke(main, [*words, "--no-minimize", "--probes", "none", "--out", str(tmp_path)])
    assert answer.exit_code in (0, 1), answer.output
    run = read_run(tmp_path)
    assert run.info.asked.sources == (str(EXAMPLE),)
    assert len(run.done) == 4
    cases = [read_case(Path(item.result.case)) for item in run.done]
    assert any(case.graph.captured for case in cases)
    assert sum(item.result.legs.get("quantized-eager") == "ran" for item in run.done) >= 2
    again = CliRunner().invoke(main, ["fuzz", "--from", "suite", "--resume", "--out", str(tmp_path)])
    assert again.exit_code == 2
    assert "--from: differs from the run to go on with" in again.output


def test_a_block_of_upstream_s_tests_has_the_same_parents_whatever_was_drawn_before(tmp_path, workers_forked):
    options = Options(targets=("TOSA-1.0+INT",), out=tmp_path)
    with Pool(1) as pool:
        parents, later = (Parents(options, ("suite",), pool) for _ in range(2))
        parents.files = later.files = ["ops/test_abs.py", "ops/test_sqrt.py"]
        parents.of_block(0)
        found = parents.of_block(1)
        assert [case.graph for case in later.of_block(1)] == [case.graph for case in found]
    operators = {node.operator for case in found for node in case.graph.nodes}
    assert {"aten.abs.default", "aten.sqrt.default"} <= operators
    assert len(draw_mutants(found, 0, 1, 20, options.targets)) == 20


def test_blocks_of_networks_run_as_they_are(tmp_path, workers_forked):
    """The first few: a lowering of each takes seconds."""
    words = ["fuzz", "--from", "blocks", "--max-examples", "2", "--target", "TOSA-1.0+INT", "--jobs", "1"]
    answer = CliRunner().invoke(main, [*words, "--no-minimize", "--probes", "none", "--out", str(tmp_path)])
    assert answer.exit_code in (0, 1), answer.output
    done = sorted(read_run(tmp_path).done, key=lambda item: item.number)
    cases = [read_case(Path(item.result.case)) for item in done]
    whole = [item[0] for item in draw_blocks(0, 0, ("TOSA-1.0+INT",))]
    assert len(whole) == len(BLOCKS)
    assert [case.graph for case in cases] == [case.graph for case in whole[:2]]
    assert [item.result.legs.get("quantized-eager") for item in done] == ["ran"] * 2


def test_another_seed_begins_with_other_files_of_the_first_folder():
    files = [f"{folder}/test_{name}.py" for folder in ("ops", "models") for name in "abcdefgh"]
    one, other = (in_order(files, seed) for seed in (0, 1))
    assert sorted(one) == sorted(files)
    assert one == in_order(files, 0)
    assert one != other
    assert all(file.startswith("ops/") for file in (*one[:8], *other[:8]))


@pytest.mark.parametrize(("source", "says"), [("nothing.py", "is no file"), ("nothing", "does not exist")])
def test_what_is_no_source_is_said_before_anything_runs(tmp_path, source, says):
    answer = CliRunner().invoke(main, ["fuzz", "--from", source, "--out", str(tmp_path / "out")])
    assert answer.exit_code == 2
    assert f"--from {source}: {says}; give 'suite', 'blocks', a model's .py, a case, or a folder" in answer.stderr
    assert not (tmp_path / "out").exists()
