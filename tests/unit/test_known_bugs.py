"""Known, resembling, new: what proves a finding, and what only looks like it."""

import msgspec
import pytest

from harness.case.place import Place, PlacedOperator
from harness.triage.conditions import Condition
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified, kind_of_proof, proved
from harness.triage.proving import MOST_RUNS, Prover, Remembered

BUCKET = "v1/numeric/differs-from-the-TOSA-reference/run/Vela/ethos-u55/RESCALE"
PLACE = Place(
    graph="tosa", operators=(PlacedOperator(op="CONV2D", facts={"batch": 2}),), here=(0,), facts={"share": 0.5}
)


def finding(bucket=BUCKET, oracle="numeric", **rest):
    words = bucket.split("/")
    given = {"kind": words[2], "stage": words[3], "pass_name": None if words[4] == "-" else words[4]}
    return Finding(
        bucket=bucket,
        oracle=oracle,
        target="ethos-u55-128",
        message="m",
        case="c.json",
        **{**given, "place": PLACE, **rest},
    )


CONDITION = Condition(path=("CONV2D: batch > 1",))
BATCHED = KnownBug(entry="batched", bucket=BUCKET, operators=("conv2d",), conditions=(CONDITION,))


def test_a_condition_at_the_place_proves_a_finding():
    found = classified(finding(), [BATCHED])
    assert (found.state, found.entry, kind_of_proof(found)) == ("known", "batched", "condition")
    assert "CONV2D: batch > 1" in found.proof


def test_a_finding_in_the_bucket_and_with_the_operators_is_only_alike():
    single = Place(graph="tosa", operators=(PlacedOperator(op="CONV2D", facts={"batch": 1}),), here=(0,))
    for place in (single, None):
        found = classified(finding(place=place, chain=("conv2d",)), [BATCHED])
        assert (found.state, found.entry, found.proof, found.known) == ("resembling", "batched", "", False)
    assert classified(finding(place=single, chain=("tanh",)), [BATCHED]).state == "new"


def test_the_entry_whose_condition_holds_names_the_finding_whatever_comes_before_it():
    like = msgspec.structs.replace(BATCHED, entry="a", conditions=(), operators=())
    assert classified(finding(), [like, BATCHED]).entry == "batched"


@pytest.mark.parametrize(
    ("bucket", "oracle", "known"),
    [
        ("v1/stream/unwritten-read/run/Vela/ethos-u55/CONV", "stream", True),  # what wrong registers show as
        ("v1/stream/hazard/run/Vela/ethos-u55/CONV", "stream", False),
        ("v1/crash/exception/vela/-/ethos-u55/SIGSEGV|no-native-output|-", "crash", False),
    ],
)
def test_a_condition_speaks_of_its_own_kind_of_finding(bucket, oracle, known):
    assert classified(finding(bucket, oracle), [BATCHED]).known is known


def test_families_and_recipe_bound_a_condition():
    assert not classified(finding(), [msgspec.structs.replace(BATCHED, families=("ethos-u85",))]).known
    assert not classified(finding(recipe="a8w8"), [msgspec.structs.replace(BATCHED, recipe="a16w8")]).known
    assert classified(finding(recipe="a16w8,io=same"), [msgspec.structs.replace(BATCHED, recipe="a16w8")]).known
    assert classified(finding(recipe="a8w8,a16w8=n0"), [msgspec.structs.replace(BATCHED, recipe="a16w8")]).known


@pytest.mark.parametrize(
    ("fingerprint", "chain", "known"),
    [
        ("values: x0 int8 [1]; v0 = CONV2D(x0)", ("CONV2D",), True),
        ("", ("CONV2D",), False),  # as it was found: there may be more to it
        ("values: x0 int8 [1]; v0 = CONV2D(x0)", ("CONV2D", "TABLE"), False),  # the place is a part of it only
    ],
)
def test_a_condition_on_smallest_programs_asks_for_one(fingerprint, chain, known):
    whole = msgspec.structs.replace(BATCHED, conditions=(msgspec.structs.replace(CONDITION, whole=True),))
    assert classified(finding(fingerprint=fingerprint, chain=chain), [whole]).known is known


def test_a_condition_of_another_target_proves_nothing():
    for family, known in (("ethos-u85", False), ("ethos-u55", True)):
        only = msgspec.structs.replace(CONDITION, families=(family,))
        assert classified(finding(), [msgspec.structs.replace(BATCHED, conditions=(only,))]).known is known


def test_a_proof_by_correction_stands_as_long_as_the_corpus_has_the_entry():
    done = proved(finding(), "batched", ("fix",))
    bare = msgspec.structs.replace(BATCHED, conditions=())
    assert (classified(done, [bare]).proof, kind_of_proof(done)) == ("correction fix alone takes it away", "correction")
    assert classified(done, [msgspec.structs.replace(bare, entry="other", operators=("tanh",))]).state == "new"


def test_what_the_user_gives_is_known_by_its_bucket():
    given = KnownBug(entry="--ignore", bucket=BUCKET, given=True)
    assert kind_of_proof(classified(finding(place=None), [given])) == "given"


A = "v1/numeric/outside-rounding/run/SomePass/tosa-int/"
B = "v1/qparams/scale-differs/lower/SomePass/tosa-int/aten.x"
C = "v1/constants/folded-constant-differs/lower/OtherPass/tosa-int/aten.y"
ONE, TWO, THREE = finding(A), finding(B, "qparams"), finding(C, "constants")
BUG = KnownBug(entry="mine", bucket=A, corrections=("fix",))


def prover(runs, bugs=(BUG,), applicable=None, stock=(ONE, TWO)):
    asked = []

    def again(names):
        asked.append(names)
        return runs[names]

    return Prover(bugs, applicable or {}, again, stock), asked


def test_the_correction_of_the_entry_that_it_resembles_proves_a_finding():
    made, asked = prover({("fix",): [TWO]})
    found = made.resembling(ONE)
    assert (found.state, found.entry, found.proof) == ("known", "mine", "correction fix alone takes it away")
    assert not made.resembling(TWO).known  # it resembles nothing
    assert asked == [("fix",)]


@pytest.mark.parametrize(
    "left", [[ONE, TWO], [msgspec.structs.replace(ONE, bucket=A.replace("SomePass", "Later"))], [THREE]]
)
def test_a_finding_that_stays_or_a_new_one_is_no_proof(left):
    """It stays though another pass is blamed now; or something comes that was not there."""
    made, _ = prover({("fix",): left})
    assert not made.resembling(ONE).known


def test_what_vela_makes_of_the_corrected_program_says_nothing_of_a_correction_of_the_passes():
    made, _ = prover({("fix",): [finding()]})
    assert made.resembling(ONE).known
    vela = finding(BUCKET.replace("RESCALE", "CONV2D"))
    workaround = KnownBug(entry="hers", bucket=vela.bucket, corrections=("fix",))
    made, _ = prover({("fix",): [finding()]}, bugs=(workaround,), stock=(vela,))
    assert not made.resembling(vela).known  # one of her bugs in the place of another


def test_a_known_bug_in_the_same_bucket_may_stay():
    """Two bugs in one output: the correction takes away the one, and the other's condition explains what is left."""
    made, _ = prover({("fix",): [msgspec.structs.replace(ONE, state="known", entry="other"), TWO]})
    assert made.resembling(ONE).known


def test_a_bug_in_another_output_is_not_taken_away():
    first, second = (finding(A, measured={"output": output}) for output in (0, 1))
    made, _ = prover({("fix",): [second]}, stock=(first, second))
    assert made.resembling(first).known
    assert not made.resembling(second).known


def test_what_one_target_proved_is_not_tried_on_the_next():
    remembered = Remembered().of("graph")
    asked = []

    def again(names):
        asked.append(names)
        return [TWO]

    there = msgspec.structs.replace(ONE, bucket=A.replace("tosa-int", "ethos-u85"), target="ethos-u85-256")
    first = Prover((BUG,), {}, again, (ONE, TWO), remembered).resembling(ONE)
    second = Prover((BUG,), {}, again, (there,), remembered.of("graph")).resembling(there)
    assert (first.known, second.known, asked) == (True, True, [("fix",)])
    assert second.proof == "correction fix alone takes it away on ethos-u55-128"
    assert remembered.of("another graph").found == {}


def test_what_one_target_proved_is_tried_first_on_a_finding_of_the_next_in_other_words():
    remembered = Remembered().of("graph")
    Prover((BUG,), {}, lambda names: [TWO], (ONE, TWO), remembered).resembling(ONE)
    other = msgspec.structs.replace(ONE, bucket="v1/crash/exception/lower/SomePass/ethos-u85/of-int16", oracle="crash")
    asked = []

    def again(names):
        asked.append(names)
        return [] if "fix" in names else [other]

    applicable = {"apart": ("theirs",), "fix": ("mine",)}
    found = Prover((BUG,), applicable, again, (other,), remembered.of("graph")).unlike_any(other)
    assert (found.known, found.entry, asked) == (True, "mine", [("fix",)])


def test_what_comes_behind_a_failure_is_not_held_against_a_correction():
    crash = finding("v1/crash/exception/lower/P/tosa-int/ValueError|x|a:b", "crash")
    bug = KnownBug(entry="mine", bucket=crash.bucket, corrections=("fix",))
    made, _ = prover({("fix",): [THREE]}, bugs=(bug,), stock=(crash,))
    assert made.resembling(crash).known


@pytest.mark.parametrize(
    ("stage", "state", "known"),
    [("prepare", "new", False), ("lower", "new", False), ("lower", "resembling", True), ("vela", "new", True)],
)
def test_a_correction_that_dies_itself_proves_nothing(stage, state, known):
    """A name that an older release does not have ends the compile where, or before, the bug did."""
    crash = finding("v1/crash/exception/lower/P/tosa-int/ValueError|x|a:b", "crash")
    bug = KnownBug(entry="mine", bucket=crash.bucket, corrections=("fix",))
    died = finding(f"v1/crash/exception/{stage}/-/tosa-int/NameError|y|c:d", "crash", state=state)
    made, _ = prover({("fix",): [died]}, bugs=(bug,), stock=(crash,))
    assert made.resembling(crash).known is known


def test_a_known_bug_in_a_bucket_that_nobody_listed_is_found_by_trying_all_corrections():
    runs = {("a", "fix"): [], ("a",): [THREE], ("fix",): []}
    made, asked = prover(runs, applicable={"a": ("other",), "fix": ("mine",)}, stock=(THREE,))
    found = made.unlike_any(THREE)
    assert (found.state, found.entry) == ("known", "mine")
    assert asked == [("a", "fix"), ("a",), ("fix",)]


def test_one_known_bug_behind_another_takes_both_corrections():
    runs = {("a", "b", "fix"): [], ("a",): [THREE], ("b",): [THREE], ("fix",): [THREE]}
    runs |= {("a", "b"): [THREE], ("a", "fix"): []}
    applicable = {"a": ("mine",), "b": ("other",), "fix": ("mine",)}
    made, _ = prover(runs, applicable=applicable, stock=(THREE,))
    found = made.unlike_any(THREE)
    assert (found.entry, found.proof) == ("mine", "correction a and fix together take it away")


def test_a_known_bug_that_shows_once_another_is_gone_is_corrected_too():
    behind = finding("v1/crash/exception/lower/P/tosa-int/ValueError|x|a:b", "crash")
    runs = {("a", "b", "fix"): [], ("a",): [THREE], ("b",): [behind], ("fix",): [THREE]}
    runs |= {("a", "b"): [behind], ("a", "fix"): [THREE], ("b", "fix"): []}
    made, _ = prover(runs, applicable={"a": ("x",), "b": ("mine",), "fix": ("y",)}, stock=(THREE,))
    found = made.unlike_any(THREE)
    assert (found.entry, found.proof) == ("mine", "correction b and fix together take it away")


@pytest.mark.parametrize(("needed", "proved"), [("j", True), ("ak", True), ("bfl", True), ("acgk", False)])
def test_a_smallest_set_of_corrections_is_found_among_many(needed, proved):
    """Of twelve corrections; more than three together are no proof."""
    names = "abcdefghijkl"
    asked = []

    def again(corrections):
        asked.append(corrections)
        return [] if set(needed) <= set(corrections) else [THREE]

    found = Prover((BUG,), dict.fromkeys(names, ("mine",)), again, (THREE,)).unlike_any(THREE)
    assert found.known is proved
    assert not proved or all(f"{name} " in found.proof for name in needed)
    assert len(asked) == len(set(asked)) <= MOST_RUNS


def test_once_all_take_it_away_that_of_an_entry_at_the_same_pass_is_tried_first():
    bug = msgspec.structs.replace(BUG, bucket=A + "aten.tanh", operators=("tanh",))
    names = [*"abcdef", "fix"]
    runs = {tuple(names): [], ("fix",): []}
    applicable = {**dict.fromkeys(names, ("other",)), "fix": ("mine",)}
    made, asked = prover(runs, bugs=(bug,), applicable=applicable, stock=(ONE,))
    assert made.unlike_any(ONE).entry == "mine"
    assert asked == [tuple(names), ("fix",)]


def test_a_new_bug_costs_one_run_and_stays_new():
    made, asked = prover({("a", "fix"): [THREE]}, applicable={"a": ("other",), "fix": ("mine",)}, stock=(THREE,))
    assert made.unlike_any(THREE) is THREE
    assert asked == [("a", "fix")]


def test_a_correction_whose_code_the_case_never_came_to_is_not_tried():
    asked = []

    def again(names):
        asked.append(names)
        return [TWO]

    made = Prover((BUG,), {"a": ("other",), "fix": ("mine",)}, again, (ONE, TWO), reaches=lambda name: name != "fix")
    assert not made.resembling(ONE).known
    assert asked == []
    assert made.unlike_any(ONE).entry == "other"
    assert asked == [("a",)]


def test_a_correction_whose_code_the_case_comes_to_once_it_is_corrected_is_tried_with_others():
    behind = KnownBug(entry="behind", bucket=A, corrections=("late",))
    runs = {("fix",): [ONE], ("fix", "late"): [TWO]}
    made, asked = prover(runs, bugs=(BUG, behind), applicable={"fix": ("mine",), "late": ("behind",)})
    made.reaches = lambda name: name != "late"
    found = made.unlike_any(ONE)
    assert (found.entry, found.proof) == ("mine", "correction fix and late together take it away")
    assert asked == [("fix",), ("fix", "late")]


@pytest.mark.parametrize(("corrections", "known"), [(("mine.py",), True), ((), False)])
def test_a_correction_beside_an_entry_that_it_resembles_is_tried_with_others(corrections, known):
    """What lies beside other entries is not tried: it has no certificate."""
    bug = msgspec.structs.replace(BUG, corrections=corrections)
    other = msgspec.structs.replace(BUG, entry="other", bucket=C, corrections=("other.py",))
    runs = {("mine.py",): [THREE], ("a", "mine.py"): [], ("a",): [ONE]}
    made, _ = prover(runs, bugs=(bug, other), applicable={"a": ("behind",)}, stock=(ONE,))
    found = made.unlike_any(ONE)
    assert found.known is known
    assert not known or (found.entry, found.proof) == ("mine", "correction mine.py and a together take it away")


@pytest.mark.parametrize(("left", "known"), [((), True), ((ONE,), False)])
def test_a_correction_that_takes_evidence_and_leaves_the_wrong_value_proves_nothing(left, known):
    scale = finding(A.replace("numeric/outside-rounding", "qparams/scale-differs"), "qparams")
    assert scale.pass_name == ONE.pass_name
    made, _ = prover({("fix",): [*left]}, applicable={"fix": ("mine",)}, stock=(ONE, scale))
    assert made.unlike_any(scale).known is known


def test_what_no_pass_is_blamed_for_is_proved_though_a_wrong_value_stays():
    """A module that was changed in place, and a loss that another bug is to blame for."""
    changed = finding("v1/model-unchanged/parameters-changed-in-place/prepare/-/tosa-int/", "model-unchanged")
    loss = finding("v1/quality/loss-beyond-quantization/convert/-/tosa-int/", "quality")
    made, _ = prover({("fix",): [loss]}, applicable={"fix": ("mine",)}, stock=(changed, loss))
    assert made.unlike_any(changed).known


def test_vela_s_findings_are_not_tried_with_corrections_of_passes():
    made, asked = prover({}, applicable={"fix": ("mine",)}, stock=(finding(),))
    assert not made.unlike_any(finding()).known
    assert asked == []


def test_the_runs_of_a_case_are_bounded():
    bugs = [KnownBug(entry=f"e{n}", bucket=A, corrections=(f"fix{n}",)) for n in range(2 * MOST_RUNS)]
    made, asked = prover({(f"fix{n}",): [ONE] for n in range(2 * MOST_RUNS)}, bugs=bugs)
    assert not made.resembling(ONE).known
    assert len(asked) == MOST_RUNS
