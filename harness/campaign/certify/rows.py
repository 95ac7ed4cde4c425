"""The comparisons that a certificate is made of: which cases, and what stock and corrected give on each.

Drawn graphs and corpus cases are shared by all corrections; kin are a correction's own. Comparisons are kept
(``harness.campaign.certify.store``), so that an interrupted run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from harness.campaign.campaign import write_case
from harness.campaign.certify.evidence import Certificate
from harness.campaign.certify.kin import Goal, kin_of, until_enough
from harness.campaign.certify.store import Store
from harness.case.case import Case, case_digest
from harness.case.chains import has_pattern
from harness.case.reading import read_case
from harness.case.target import DEFAULT_TARGETS, FLOAT_TARGET, parse_target
from harness.case.wording import counted_as
from harness.compat.releases import release_line
from harness.corrections import Correction, chosen
from harness.evidence.observation import CRASH
from harness.triage.buckets import VELA_STAGE
from harness.triage.corpus import Entry, bugs_of
from harness.triage.findings import Finding
from harness.triage.proving import same_finding
from harness.workers.pool import Pool
from harness.workers.protocol import CompareTask, Comparison, Task, Variant

ETHOS_U_SHARE = 5
"""Of five graphs on TOSA one is compared on each Ethos-U target, too."""

_Wanted = tuple[Case, str, Variant]
"""A case, its file, and the corrections to compare it with."""


@dataclass(frozen=True)
class Plan:
    """What certificates are made of.

    :param graphs: drawn graphs a correction on ``TOSA-1.0+INT``, and a fifth of them on each default Ethos-U target; on
        ``TOSA-1.0+FP`` where the bugs are of float models.
    :param out: folder for cases, comparisons and certificates.
    :param programs: Vela's bugs that are known by their smallest programs alone: entries without a case.
    :param reach: graphs that are to come to the corrected code (``harness.campaign.certify.kin``); 0: do not look.
    :param earlier: certificates that were made already, by name: what they say of the same correction and packages
        is not made again.
    """

    corrections: tuple[Correction, ...]
    corpus: Sequence[Entry]
    graphs: int
    seed: int
    out: Path
    programs: Sequence[Entry] = ()
    reach: int = 0
    earlier: Mapping[str, Certificate] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparedCase:
    """A case with one comparison of it."""

    case: Case
    path: str
    comparison: Comparison


class Rows:
    """Makes and keeps comparisons.

    :param together: all corrections at once.
    :param report: called with a line of progress.
    :param begins: called with the number of cases that are compared next.
    """

    def __init__(
        self, plan: Plan, pool: Pool, together: Variant, report: Callable[[str], None], begins: Callable[[int], None]
    ) -> None:
        self._plan, self._pool, self._together, self._report, self._begins = plan, pool, together, report, begins
        self._store = Store(plan.out / f"comparisons-{release_line() or 'unknown'}.jsonl")
        self._shared: dict[tuple[str, ...], list[tuple[Case, ...]]] = {}
        self._ended: dict[str, tuple[Finding, ...]] = {}
        """What stock shows on a case that ends a worker, by its file."""

    def graphs(self, correction: Correction | None) -> list[ComparedCase]:
        """Comparisons of drawn graphs, with one correction or (None) with all."""
        return self.compare(self._drawn(correction), correction.name if correction else "all together")

    def kin(self, correction: Correction, graphs: Sequence[ComparedCase]) -> list[ComparedCase]:
        """Comparisons of kin of the bug's own cases until, with the drawn graphs, enough came to the correction."""
        goal = Goal(self._plan.reach)
        own = self._own(correction)

        def compare(cases: Sequence[Case]) -> list[ComparedCase]:
            return self.compare([self.wanted(case, (correction.word,)) for case in cases], correction.name)

        return until_enough(kin_of(own, self._plan.seed, goal.tries), goal, compare, graphs)

    def corpus(self, words: Variant) -> list[ComparedCase]:
        """Comparisons of the corpus."""
        return self.compare(self._corpus_cases(words), "corpus")

    def compare_ahead(self, needed: Sequence[Correction]) -> None:
        """Make every comparison that the steps will ask for, sharing each case's stock compile."""
        cases = [case for item in needed for case in self._corpus_cases((item.word,))]
        self.compare([*cases, *self._corpus_cases(self._together)], "corpus")
        self.compare([case for item in (*needed, None) for case in self._drawn(item)], "drawn graphs")

    def _corpus_cases(self, words: Variant) -> list[_Wanted]:
        return [(read_case(entry.folder), str(entry.folder / "case.json"), words) for entry in self._plan.corpus]

    def _drawn(self, correction: Correction | None) -> list[_Wanted]:
        """Drawn cases for one correction or (None) for all.

        They come from one sequence of graphs in which each correction that this release needs finds its
        operator patterns often enough, so that corrections share cases.
        """
        words = (correction.word,) if correction else self._together
        drawn = self._sequence(self._targets(correction) if correction else DEFAULT_TARGETS)
        if correction is not None:
            drawn = [cases for cases in drawn if has_pattern(cases[0].graph, correction.patterns)]
        if not drawn:  # operators that no generated graph has
            return []
        tosa, *ethos_u = zip(*drawn[: self._plan.graphs], strict=True)
        few = max(1, self._plan.graphs // ETHOS_U_SHARE)
        cases = [*tosa, *(case for column in ethos_u for case in column[:few])]
        return [self.wanted(case, words) for case in cases]

    def _own(self, correction: Correction) -> list[Case]:
        """The cases of the bugs that it removes."""
        return [read_case(entry.folder) for entry in self._plan.corpus if entry.name in correction.entries]

    def _targets(self, correction: Correction) -> tuple[str, ...]:
        """Where graphs are drawn for it: on the float profile, if all its bugs are bugs of float models."""
        own = self._own(correction)
        floats = own and not any(parse_target(case.target).quantized for case in own)
        return (FLOAT_TARGET,) if floats else DEFAULT_TARGETS

    def _sequence(self, targets: tuple[str, ...]) -> list[tuple[Case, ...]]:
        if targets not in self._shared:
            groups = [item.patterns for item in chosen(self._together) if self._targets(item) == targets]
            from generators.cases import draw_covering

            self._shared[targets] = draw_covering(groups, self._plan.seed, self._plan.graphs, targets)
        return self._shared[targets]

    def wanted(self, case: Case, words: Variant) -> _Wanted:
        """A drawn case, in a file of its own, to be compared with corrections."""
        return case, str(write_case(case, self._plan.out / "cases")), words

    def compare(self, cases: Iterable[_Wanted], name: str) -> list[ComparedCase]:
        """Comparisons of cases with variants, from the store or made now."""
        wanted = [(case, path, words, case_digest(case)) for case, path, words in cases]
        missing: dict[str, list[tuple[Case, str, Variant, str]]] = {}
        for item in wanted:
            if self._store.get(item[3], item[0].target, item[2]) is None:
                missing.setdefault(item[1], []).append(item)
        tasks = [CompareTask(case=path, variants=tuple(item[2] for item in items)) for path, items in missing.items()]
        self._begins(len(tasks))
        for done, (items, result) in enumerate(zip(missing.values(), self._pool.compare(tasks), strict=True), 1):
            rows = result.comparisons
            if result.problem is not None:
                same = self._same_but_for_a_death(items[0][1], [item[2] for item in items])
                rows = tuple(
                    same.get(item[2]) or self._alone(item[1], item[2], tried=len(items) == 1) for item in items
                )
            for item, row in zip(items, rows, strict=result.invalid is None):
                self._store.put(item[3], item[0].target, row)
            if done % 10 == 0 or done == len(tasks):
                self._report(f"{name}: {done} of {len(tasks)} cases compared ({len(wanted)} comparisons in all)")
        found = [(case, path, self._store.get(digest, case.target, words)) for case, path, words, digest in wanted]
        return [ComparedCase(case, path, row) for case, path, row in found if row is not None]

    def proved(self, items: Sequence[ComparedCase], corpus: Sequence[Entry]) -> list[ComparedCase]:
        """The same, with what their corrected programs show in the state that a campaign finds it in, by proof.

        :param corpus: what is known while the corrections apply.
        """
        self._report(f"looking for proofs of what shows with the corrections alone: {counted_as(len(items), 'case')}")
        self._begins(len(items))
        known = bugs_of(corpus)
        tasks = [Task(case=item.path, corrections=item.comparison.variant, known=known) for item in items]
        made: list[ComparedCase] = []
        for item, run in zip(items, self._pool.run(tasks), strict=True):
            proofs = [finding for finding in run.findings if finding.known]
            row = item.comparison
            corrected = tuple(next((it for it in proofs if same_finding(it, one)), one) for one in row.corrected)
            made.append(replace(item, comparison=msgspec.structs.replace(row, corrected=corrected)))
            self._store.put(case_digest(item.case), item.case.target, made[-1].comparison)
        return made

    def _same_but_for_a_death(self, path: str, variants: Sequence[Variant]) -> dict[Variant, Comparison]:
        """Of a case that ended a worker: the variants with which Vela is given the same, and ends alike."""
        [again] = self._pool.compare([CompareTask(case=path, variants=tuple(variants), guarded=True)])
        return {row.variant: row for row in again.comparisons if row.same}

    def _alone(self, path: str, words: Variant, *, tried: bool) -> Comparison:
        """A comparison of a case that ended a worker: most variants do not even execute it.

        Where one does, each run is made by itself, and its death is a finding like any other.

        :param tried: it was compared with this variant alone, so that doing so again would end a worker again. So it
            would where stock dies in Vela, since a comparison compiles stock.
        """
        if path not in self._ended:
            self._ended[path] = self._counted_findings(path, ())
        stock = self._ended[path]
        if not tried and not any(item.oracle == CRASH and item.stage == VELA_STAGE for item in stock):
            [again] = self._pool.compare([CompareTask(case=path, variants=(words,))])
            if again.comparisons:
                return again.comparisons[0]
        corrected = self._counted_findings(path, words)
        return Comparison(variant=words, what="a run ends the process", stock=stock, corrected=corrected)

    def _counted_findings(self, path: str, words: Variant) -> tuple[Finding, ...]:
        [run] = self._pool.run([Task(case=path, corrections=words, confirm=False)])
        return tuple(item for item in run.findings if not item.information)
