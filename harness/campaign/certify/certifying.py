"""Certify corrections, in four steps, each of which may refuse:

(a) *stock*: the bug shows on its corpus cases; otherwise the correction is not needed here.
(b) *corrected*: on the same cases every oracle passes and every leg agrees, but for other known bugs.
(c) *nothing else moved*: drawn graphs with the operators that the correction touches, and the corpus.
(d) *together*: (b) with all corrections at once, and drawn graphs with any of their operators.

Corpus cases of (a) and (b) run as in any campaign, twice if something is found; the comparisons of
(c) and (d) are ``harness.campaign.certify.comparing``'s, kept by ``harness.campaign.certify.store``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.campaign.campaign import write_case
from harness.campaign.certify.deciding import by_bucket, met_in_vela, outcome_of, refuses, remaining, tally, verdict_on
from harness.campaign.certify.evidence import Certificate, Counterexample, Function, Moved, Shown, Verdict
from harness.campaign.certify.reduced_case import smallest
from harness.campaign.certify.store import Store
from harness.case.case import Case, case_digest
from harness.case.chains import has_pattern, operator_chain
from harness.case.checking import retargeted
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.case.target import DEFAULT_TARGETS, parse_target
from harness.compat.releases import installed, release_line
from harness.compat.sources import digest_of, source_of
from harness.corrections import Correction, chosen
from harness.corrections.source import edited_modules
from harness.triage.corpus import Entry, with_corrections
from harness.triage.findings import Finding
from harness.workers.pool import Pool
from harness.workers.protocol import CaseResult, CompareTask, Comparison, Task, Variant

ETHOS_U_SHARE = 5
"""Of five graphs on TOSA one is compared on each Ethos-U target, too."""

_Wanted = tuple[Case, str, Variant]
"""A case, its file, and the corrections to compare it with."""


@dataclass(frozen=True)
class Plan:
    """What certificates are made of.

    :param graphs: drawn graphs a correction on ``TOSA-1.0+INT``; a fifth of them on each default Ethos-U target.
    :param out: folder for cases, comparisons and certificates.
    """

    corrections: tuple[Correction, ...]
    corpus: Sequence[Entry]
    graphs: int
    seed: int
    out: Path


class _Step(NamedTuple):
    """A part of (c) or (d).

    :param name: what the certificate calls its cases.
    :param alone: with the one correction; otherwise with all together.
    :param drawn: on drawn graphs; otherwise on the corpus.
    """

    name: str
    alone: bool
    drawn: bool


_STEPS = (
    _Step("graphs", alone=True, drawn=True),
    _Step("corpus", alone=True, drawn=False),
    _Step("together", alone=False, drawn=True),
    _Step("corpus together", alone=False, drawn=False),
)


@dataclass(frozen=True)
class _Compared:
    """A case with one comparison of it."""

    case: Case
    path: str
    comparison: Comparison


@dataclass
class Certifier:
    """Runs a plan.

    :param report: called with a line of progress.
    :param begins: called with the number of cases that are run or compared next.
    """

    plan: Plan
    pool: Pool
    report: Callable[[str], None]
    begins: Callable[[int], None] = lambda cases: None
    _together: Variant = ()
    _shared: list[tuple[Case, ...]] = field(default_factory=list)
    _store: Store = field(init=False)

    def __post_init__(self) -> None:
        self._store = Store(self.plan.out / f"comparisons-{release_line() or 'unknown'}.jsonl")
        own = (item for item in self.plan.corrections if item.for_release(_executorch()))
        self._together = tuple(dict.fromkeys(item.word for item in (*chosen(("all",)), *own)))

    def certificates(self) -> Iterator[Certificate]:
        """A certificate for every correction of the plan, as soon as it is decided."""
        needed = [item for item in self.plan.corrections if item.for_release(_executorch())]
        if len(needed) > 1:
            self._compare_ahead(needed)
        for correction in self.plan.corrections:
            yield self._certificate(correction) if correction in needed else self._not_written_for(correction)

    # ---- one certificate ------------------------------------------------------------------------------------------

    def _certificate(self, correction: Correction) -> Certificate:
        shown, left = self._shown(correction, (correction.word,), self._together)
        bug = any(row.bug for row in shown)
        trouble = {"corrected": left[0].message} if left else {}
        moved: list[Moved] = []
        counterexample = None
        for step in _STEPS if bug and not trouble else ():
            one = correction if step.alone else None
            words = (correction.word,) if step.alone else self._together
            rows = self._graphs(one) if step.drawn else self._corpus(words)
            corpus = with_corrections(self.plan.corpus, chosen(words))
            found = [(item, outcome_of(item.comparison, corpus)) for item in rows]
            for target in dict.fromkeys(item.case.target for item, _ in found):
                outcomes = tally(outcome for item, outcome in found if item.case.target == target)
                moved.append(Moved(cases=step.name, target=target, outcomes=outcomes))
            bad = [item for item, outcome in found if refuses(outcome, one)]
            if bad:
                counterexample = self._counterexample(bad, corpus)
                where = "nothing else moved" if step.alone else "all corrections together"
                trouble = {where: _told(counterexample, words)}
                break
        verdict, why = verdict_on(bug, trouble)
        return self._filled(correction, verdict, why, shown, moved, counterexample)

    def _not_written_for(self, correction: Correction) -> Certificate:
        """Stock alone, on a release that the correction has no form for."""
        shown, _ = self._shown(correction, None, None)
        verdict, why = verdict_on(False, {})
        if any(row.bug for row in shown):
            verdict = "refused"
            why = f"stock shows the bug, and the correction has no form for executorch {_executorch()}"
        return self._filled(correction, verdict, why, shown)

    def _filled(
        self,
        correction: Correction,
        verdict: Verdict,
        why: str,
        shown: Sequence[Shown],
        moved: Sequence[Moved] = (),
        counterexample: Counterexample | None = None,
    ) -> Certificate:
        return Certificate(
            name=correction.name,
            verdict=verdict,
            why=why,
            line=release_line() or "unknown",
            releases=dict(installed()),
            workaround=correction.workaround,
            cause=correction.cause,
            change=correction.change,
            upstream=correction.upstream,
            written_for=correction.releases,
            needs=correction.needs,
            digest=correction.digest(_executorch()),
            functions=tuple(_functions(correction)),
            shown=tuple(shown),
            moved=tuple(moved),
            graphs={row.target: sum(row.outcomes.values()) for row in moved if row.cases == "graphs"},
            seed=self.plan.seed,
            counterexample=counterexample,
            command=f"armdiff certify {correction.word} --graphs {self.plan.graphs} --seed {self.plan.seed}",
        )

    # ---- (a) and (b): the corpus cases of the bug ----------------------------------------------------------------

    def _shown(
        self, correction: Correction, variant: Variant | None, together: Variant | None
    ) -> tuple[list[Shown], list[Finding]]:
        """Rows for the bug's corpus cases, and what is still wrong with the correction or with all of them."""
        mine = [entry for entry in self.plan.corpus if entry.name in correction.entries]
        cases = [(entry, case, path) for entry in mine for case, path in self._on_targets(entry)]
        variants = [item for item in (variant, together) if item is not None]
        tasks = [Task(case=path, corrections=words) for words in [(), *variants] for _, _, path in cases]
        self.report(f"{correction.name}: {len(cases)} corpus cases, stock and corrected")
        self.begins(len(tasks))
        results = [*self.pool.run(tasks)]
        rows, left = [], []
        for place, (entry, case, _) in enumerate(cases):
            stock, *after = results[place :: len(cases)]
            bug = any(_is_the_bug(entry, item) for item in stock.findings)
            columns = [by_bucket(item.findings) | _trouble(item) for item in after]
            rows.append(
                Shown(
                    entry=entry.name,
                    target=case.target,
                    bug=bug,
                    stock=by_bucket(stock.findings) | _trouble(stock),
                    corrected=columns[0] if columns else {},
                    together=columns[1] if len(columns) > 1 else {},
                    legs=tuple(leg for leg, state in after[0].legs.items() if state == "ran") if after else (),
                )
            )
            for words, result in zip(variants, after, strict=True):
                corpus = with_corrections(self.plan.corpus, chosen(words))
                [renewed] = [item for item in corpus if item.name == entry.name]
                left += remaining(renewed, result.findings, corpus)
        return rows, left

    def _on_targets(self, entry: Entry) -> Iterator[tuple[Case, str]]:
        """An entry's case on its own target, and on the default ones that its recipe fits."""
        case = read_case(entry.folder)
        families = {parse_target(case.target).family}
        yield case, str(entry.folder / "case.json")
        for target in DEFAULT_TARGETS if case.tensors is None else ():
            if parse_target(target).family in families or not parse_target(case.target).quantized:
                continue
            try:
                other = retargeted(case, target)
            except BadInput:
                continue
            yield other, str(write_case(other, self.plan.out / "cases"))

    # ---- (c) and (d): what moved ----------------------------------------------------------------------------------

    def _graphs(self, correction: Correction | None) -> list[_Compared]:
        """Comparisons of drawn graphs, with one correction or (None) with all."""
        return self._compare(self._drawn(correction), correction.name if correction else "all together")

    def _corpus(self, words: Variant) -> list[_Compared]:
        return self._compare(self._corpus_cases(words), "corpus")

    def _compare_ahead(self, needed: Sequence[Correction]) -> None:
        """Make every comparison that the steps will ask for, sharing each case's stock compile."""
        cases = [case for item in needed for case in self._corpus_cases((item.word,))]
        self._compare([*cases, *self._corpus_cases(self._together)], "corpus")
        self._compare([case for item in (*needed, None) for case in self._drawn(item)], "drawn graphs")

    def _corpus_cases(self, words: Variant) -> list[_Wanted]:
        return [(read_case(entry.folder), str(entry.folder / "case.json"), words) for entry in self.plan.corpus]

    def _drawn(self, correction: Correction | None) -> list[_Wanted]:
        """Drawn cases for one correction or (None) for all.

        They come from one sequence of graphs in which each correction that this release needs finds its
        operator patterns often enough, so that corrections share cases.
        """
        words = (correction.word,) if correction else self._together
        drawn = self._sequence()
        if correction is not None:
            drawn = [cases for cases in drawn if has_pattern(cases[0].graph, correction.patterns)]
        tosa, *ethos_u = zip(*drawn[: self.plan.graphs], strict=True)
        few = max(1, self.plan.graphs // ETHOS_U_SHARE)
        cases = [*tosa, *(case for column in ethos_u for case in column[:few])]
        return [(case, str(write_case(case, self.plan.out / "cases")), words) for case in cases]

    def _sequence(self) -> list[tuple[Case, ...]]:
        if not self._shared:
            groups = [item.patterns for item in chosen(self._together)]
            from generators.cases import draw_covering

            self._shared = draw_covering(groups, self.plan.seed, self.plan.graphs, DEFAULT_TARGETS)
        return self._shared

    def _compare(self, cases: Iterable[_Wanted], name: str) -> list[_Compared]:
        """Comparisons of cases with variants, from the store or made now."""
        wanted = [(case, path, words, case_digest(case)) for case, path, words in cases]
        missing: dict[str, list[tuple[Case, str, Variant, str]]] = {}
        for item in wanted:
            if self._store.get(item[3], item[0].target, item[2]) is None:
                missing.setdefault(item[1], []).append(item)
        tasks = [CompareTask(case=path, variants=tuple(item[2] for item in items)) for path, items in missing.items()]
        self.begins(len(tasks))
        for done, (items, result) in enumerate(zip(missing.values(), self.pool.compare(tasks), strict=True), 1):
            rows = result.comparisons
            if result.problem is not None:
                rows = tuple(self._alone(item[1], item[2]) for item in items)
            for item, row in zip(items, rows, strict=result.invalid is None):
                self._store.put(item[3], item[0].target, row)
            if done % 10 == 0 or done == len(tasks):
                self.report(f"{name}: {done} of {len(tasks)} cases compared ({len(wanted)} comparisons in all)")
        found = [(case, path, self._store.get(digest, case.target, words)) for case, path, words, digest in wanted]
        return [_Compared(case, path, row) for case, path, row in found if row is not None]

    def _alone(self, path: str, words: Variant) -> Comparison:
        """A comparison of a case that ended a worker: most variants do not even execute it.

        Where one does, each run is made by itself, and its death is a finding like any other.
        """
        [again] = self.pool.compare([CompareTask(case=path, variants=(words,))])
        if again.comparisons:
            return again.comparisons[0]
        runs = [*self.pool.run(Task(case=path, corrections=item, confirm=False) for item in ((), words))]
        stock, corrected = (tuple(item for item in run.findings if not item.information) for run in runs)
        return Comparison(variant=words, what="a run ends the process", stock=stock, corrected=corrected)

    def _counterexample(self, bad: Sequence[_Compared], corpus: Sequence[Entry]) -> Counterexample:
        """The smallest case that refuses, cut down while it does so alike.

        If possible one that is no bug of Vela's, and one without a stock finding.
        """

        def rank(item: _Compared) -> tuple[bool, int, int, str]:
            row = item.comparison
            return bool(met_in_vela(row, corpus)), len(row.stock), len(item.case.graph.nodes), item.path

        first = min(bad, key=rank)
        outcome = outcome_of(first.comparison, corpus)
        words = first.comparison.variant
        seen: dict[str, _Compared] = {}

        def still(case: Case) -> bool:
            path = str(write_case(case, self.plan.out / "cases"))
            made = self._compare([(case, path, words)], "counterexample")
            if not made or outcome_of(made[0].comparison, corpus) != outcome:
                return False
            if made[0].comparison.stock and not first.comparison.stock:
                return False
            seen[case_digest(case)] = made[0]
            return True

        self.report(f"making the counterexample {first.path} smaller")
        case = first.case if first.case.graph.captured else smallest(first.case, still)
        found = seen.get(case_digest(case), first)
        row = found.comparison
        return Counterexample(
            case=found.path,
            target=case.target,
            outcome=outcome,
            what=row.apart or next((item.message for item in row.corrected), row.what),
            chain=operator_chain(case.graph),
            nodes=len(case.graph.nodes),
            vela=met_in_vela(row, corpus),
            stock=by_bucket(row.stock),
            corrected=by_bucket(row.corrected),
        )


def _told(found: Counterexample, words: Variant) -> str:
    """What refuses, in one line with what to do about it."""
    if not found.vela:
        return found.what
    asked = " ".join(f"--correction {word}" for word in words) if len(words) == 1 else "--correction all"
    return (
        f"on {found.target} the corrected program meets {found.vela}, and stock's program does not ({found.what}); "
        f"no other case refuses for another reason. 'armdiff check MODEL --target {found.target} {asked}' says whether "
        "your model meets it"
    )


def _functions(correction: Correction) -> Iterator[Function]:
    """The places that a correction changes on the installed release."""
    for module in edited_modules((correction,)):
        for place in module.places:
            before, after = source_of(module.before, place), source_of(module.after, place)
            assert before is not None
            assert after is not None
            yield Function(module=module.module, place=place, installed=digest_of(before), corrected=digest_of(after))


def _executorch() -> str:
    return installed().get("executorch", "")


def _is_the_bug(entry: Entry, finding: Finding) -> bool:
    """Is a stock finding the entry's bug? Where the line expects nothing, every finding may be."""
    return entry.resembles(finding) if entry.expected is not None else not finding.information


def _trouble(result: CaseResult) -> dict[str, str]:
    what = result.problem or result.invalid
    return {"cannot run": what} if what else {}
