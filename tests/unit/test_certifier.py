"""Certifying without packages: pools that are stand-ins say what stock and corrected show, and what ends a worker."""

import itertools
from concurrent.futures import Future

import msgspec
import pytest

from harness.campaign.certify.certifying import Certifier
from harness.campaign.certify.evidence import Certificate, Moved
from harness.campaign.certify.patching import patch_difference
from harness.campaign.certify.rows import Plan, Rows
from harness.compat.releases import installed
from harness.corrections import find_correction
from harness.triage.corpus import default_corpus, entries
from harness.triage.known import proved
from harness.workers.protocol import CaseResult, Compared, Comparison, Emitted
from tests.integration.conftest import sigmoid_case
from tests.unit.test_certify import NEG, A, C, finding


class Dying:
    """A pool in which comparing several variants at once, or one of ``deadly``, ends a worker; it counts.

    With Vela in a child those of ``alike`` are compared.
    """

    def __init__(self, deadly, stage, alike=()):
        self.deadly, self.stage, self.alike, self.compared, self.ran = deadly, stage, alike, [], []

    def compare(self, tasks):
        for task in tasks:
            if task.guarded:
                rows = [Comparison(variant=words, same=words in self.alike, what="w") for words in task.variants]
                yield Compared(case=task.case, comparisons=tuple(rows))
                continue
            self.compared.append(task.variants)
            dies = len(task.variants) > 1 or task.variants[0] in self.deadly
            rows = () if dies else tuple(Comparison(variant=words, same=True) for words in task.variants)
            yield Compared(case=task.case, comparisons=rows, problem="it died" if dies else None)

    def run(self, tasks):
        for task in tasks:
            self.ran.append(task.corrections)
            dies = () if task.corrections == (UNUSED,) else (finding(f"v1/crash/SIGSEGV/{self.stage}/P/ethos-u55/x"),)
            yield CaseResult(case=task.case, findings=dies)


UNUSED = "unused-inputs-kept"


@pytest.mark.parametrize(
    ("variants", "deadly", "stage", "compared", "ran", "same"),
    [
        ([NEG], [NEG], "vela", [(NEG,)], [(), (NEG,)], [False]),
        ([NEG, UNUSED], [NEG, UNUSED], "vela", [(NEG, UNUSED)], [(), (NEG,), (UNUSED,)], [False, False]),
        ([NEG, UNUSED], [UNUSED], "run", [(NEG, UNUSED), (NEG,), (UNUSED,)], [(), (UNUSED,)], [True, False]),
    ],
)
def test_a_case_that_ends_a_worker_is_tried_no_more_often_than_it_must(
    tmp_path, variants, deadly, stage, compared, ran, same
):
    pool = Dying([(name,) for name in deadly], stage)
    rows = Rows(Plan((), (), 5, 0, tmp_path), pool, (), lambda line: None, lambda cases: None)
    found = rows.compare([rows.wanted(sigmoid_case(), (name,)) for name in variants], "cases")
    assert pool.compared == [tuple((name,) for name in words) for words in compared]
    assert pool.ran == ran
    assert [row.comparison.same for row in found] == same
    assert all(row.comparison.stock for row in found if not row.comparison.same)
    assert [row.comparison.corrected == () for row in found if row.comparison.variant == (UNUSED,)] in ([], [True])


def test_where_vela_dies_alike_nothing_runs_for_it(tmp_path):
    pool = Dying([(NEG,), (UNUSED,)], "vela", alike=[(NEG,)])
    rows = Rows(Plan((), (), 5, 0, tmp_path), pool, (), lambda line: None, lambda cases: None)
    found = rows.compare([rows.wanted(sigmoid_case(), (name,)) for name in (NEG, UNUSED)], "cases")
    assert [row.comparison.same for row in found] == [True, False]
    assert (pool.compared, pool.ran) == ([((NEG,), (UNUSED,))], [(), (UNUSED,)])


def test_what_a_certificate_says_already_is_not_made_again(tmp_path):
    correction = find_correction("cat-keeps-repeated-inputs")
    stored = msgspec.json.decode(
        (default_corpus() / "certificates/default/cat-keeps-repeated-inputs.json").read_bytes(), type=Certificate
    )
    rows = [row for row in stored.moved if row.cases != "kin"]
    kin = Moved(cases="kin", target="TOSA-1.0+INT", outcomes={"right": 9}, reached=9)
    earlier = msgspec.structs.replace(stored, moved=(*rows, kin), releases=dict(installed()))

    def made(seed):
        plan = Plan((correction,), (), 200, seed, tmp_path, reach=200, earlier={correction.name: earlier})
        [found] = Certifier(plan, None, lambda line: None).certificates()  # nobody is there to compare anything
        return found

    again = made(0)
    assert (again.verdict, again.shown, again.patch) == ("certified", earlier.shown, earlier.patch)
    assert {row.cases for row in again.moved} == {row.cases for row in earlier.moved}
    with pytest.raises(AttributeError):
        made(1)


class Together:
    """A pool in which a bug shows in stock alone, and more than one correction makes any case worse."""

    def __init__(self, bucket):
        self.bucket = bucket

    def run(self, tasks):
        for task in tasks:
            yield CaseResult(case=task.case, findings=() if task.corrections else (finding(self.bucket),))

    def compare(self, tasks):
        for task in tasks:
            rows = [
                Comparison(variant=words, corrected=(finding(A),) if len(words) > 1 else (), same=len(words) == 1)
                for words in task.variants
            ]
            yield Compared(case=task.case, comparisons=tuple(rows))


def test_what_is_right_alone_and_breaks_others_together_is_refused(tmp_path):
    [bug] = [item for item in entries([default_corpus()]) if item.name == "addmm-constant-bias-prepare"]
    plan = Plan((find_correction("addmm-bias-get-attr"),), [bug], 1, 0, tmp_path)
    [made] = Certifier(plan, Together(bug.expected.bucket), lambda line: None).certificates()
    assert (made.verdict, made.why) == ("refused", "all corrections together: m")
    assert [row.cases for row in made.moved if row.outcomes.get("worse")] == ["together"] * 3
    assert made.counterexample.nodes == 1


class Uncovering(Together):
    """A pool in which a correction shows another finding behind the bug; a campaign proves it to be ``entry``'s."""

    def __init__(self, bucket, entry):
        super().__init__(bucket)
        self.entry = entry

    def run(self, tasks):
        for task in tasks:
            if not task.known:
                yield from super().run([task])
                continue
            shown = finding(A)
            yield CaseResult(case=task.case, findings=(proved(shown, self.entry, ("x",)) if self.entry else shown,))

    def compare(self, tasks):
        for task in tasks:
            rows = [
                Comparison(variant=words, same=len(words) > 1, stock=(finding(C),), corrected=(finding(A),))
                for words in task.variants
            ]
            yield Compared(case=task.case, comparisons=tuple(rows))


@pytest.mark.parametrize(("proved_to_be", "verdict"), [("cumsum-of-codes-is-int64", "certified"), ("", "refused")])
def test_what_shows_behind_a_corrected_bug_may_be_proved_to_be_a_known_one(tmp_path, proved_to_be, verdict):
    names = {"addmm-constant-bias-prepare", "cumsum-of-codes-is-int64"}
    bugs = [item for item in entries([default_corpus()]) if item.name in names]
    bucket = next(item.expected.bucket for item in bugs if item.name == "addmm-constant-bias-prepare")
    plan = Plan((find_correction("addmm-bias-get-attr"),), bugs, 1, 0, tmp_path)
    [made] = Certifier(plan, Uncovering(bucket, proved_to_be), lambda line: None).certificates()
    assert made.verdict == verdict, made.why
    drawn = [row.outcomes for row in made.moved if row.cases == "graphs"]
    assert all(row == ({"uncovered": 1} if proved_to_be else {"worse": 1}) for row in drawn)


class Behind(Uncovering):
    """A pool in which the bug's own case shows another finding when corrected, and no other case moves."""

    def run(self, tasks):
        for task in tasks:
            if task.corrections and not task.known:
                yield CaseResult(case=task.case, findings=(finding(A),))
            else:
                yield from super().run([task])

    def compare(self, tasks):
        for task in tasks:
            yield Compared(
                case=task.case, comparisons=tuple(Comparison(variant=words, same=True) for words in task.variants)
            )


@pytest.mark.parametrize(("proved_to_be", "verdict"), [("conv3d-on-cpu-has-no-kernel", "certified"), ("", "refused")])
def test_what_the_corrected_case_itself_shows_may_be_proved_to_be_a_known_bug(tmp_path, proved_to_be, verdict):
    known = {item.name: item for item in entries([default_corpus()])}
    bug, program = known["addmm-constant-bias-prepare"], known["conv3d-on-cpu-has-no-kernel"]
    plan = Plan((find_correction("addmm-bias-get-attr"),), [bug], 1, 0, tmp_path, [program])
    [made] = Certifier(plan, Behind(bug.expected.bucket, proved_to_be), lambda line: None).certificates()
    assert made.verdict == verdict, made.why
    assert made.why.startswith("corrected: m" if not proved_to_be else "the bug is gone"), made.why


class Emitting:
    """A pool whose programs come from a list, over and over."""

    def __init__(self, *programs):
        self.programs = itertools.cycle(programs)

    def emit_all(self, tasks):
        for _ in tasks:
            made = Future()
            made.set_result(Emitted(program=next(self.programs)))
            yield made


def test_a_patch_gives_what_the_correction_gives_if_a_program_of_several_is_the_same(tmp_path):
    plan = Plan((), (), 1, 0, tmp_path)
    correction = find_correction("addmm-bias-get-attr")
    assert patch_difference(correction, plan, Emitting(b"a"), Emitting(b"b", b"a")) == ""
    told = patch_difference(correction, plan, Emitting(b"a", b"aa"), Emitting(b"bbb"))
    assert told.endswith("on TOSA-1.0+INT: 1 bytes corrected, 3 bytes patched")
