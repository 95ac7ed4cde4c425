"""Certify corrections, in four steps, each of which may refuse:

(a) *stock*: the bug shows on its corpus cases; otherwise the correction is not needed here.
(b) *corrected*: on the same cases every oracle passes and every leg agrees, but for other known bugs.
(c) *nothing else moved*: drawn graphs with the operators that the correction touches, the corpus, and kin of the
    bug's own cases until enough graphs came to the corrected code; its whole domain, if it has one.
(d) *together*: (b) with all corrections at once, and drawn graphs with any of their operators.

Corpus cases of (a) and (b) run as in any campaign, twice if something is found; the comparisons of
(c) and (d) are ``harness.campaign.certify.comparing``'s, kept by ``harness.campaign.certify.store``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from harness.campaign.campaign import write_case
from harness.campaign.certify.deciding import (
    by_bucket,
    met_in_vela,
    outcome_of,
    refuses,
    remaining,
    tally,
    too_often_in_vela,
    verdict_on,
)
from harness.campaign.certify.evidence import (
    Certificate,
    Counterexample,
    Function,
    Moved,
    Outcome,
    Shown,
    Verdict,
    Whole,
)
from harness.campaign.certify.reduced_case import smallest
from harness.campaign.certify.rows import ComparedCase, Plan, Rows
from harness.campaign.certify.whole import domains
from harness.case.case import Case, case_digest
from harness.case.chains import operator_chain
from harness.case.checking import retargeted
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.case.target import DEFAULT_TARGETS, parse_target
from harness.compat.releases import installed, release_line
from harness.compat.sources import digest_of, source_of
from harness.corrections import Correction, chosen
from harness.corrections.source import edited_modules
from harness.triage.corpus import Entry, bugs_of, with_corrections
from harness.triage.findings import Finding
from harness.workers.pool import Pool
from harness.workers.protocol import CaseResult, Task, Variant, WholeTask


class _Step(NamedTuple):
    """A part of (c) or (d).

    :param name: what the certificate calls its cases.
    :param alone: with the one correction; otherwise with all together.
    :param source: where its cases come from.
    """

    name: str
    alone: bool
    source: Literal["drawn", "corpus", "kin"]


_STEPS = (
    _Step("graphs", alone=True, source="drawn"),
    _Step("corpus", alone=True, source="corpus"),
    _Step("kin", alone=True, source="kin"),
    _Step("together", alone=False, source="drawn"),
    _Step("corpus together", alone=False, source="corpus"),
)


MOST_PROVED = 20
"""More cases that seem worse are not worth a proof each."""


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
    _rows: Rows = field(init=False)

    def __post_init__(self) -> None:
        own = (item for item in self.plan.corrections if item.for_release(_executorch()))
        self._together = tuple(dict.fromkeys(item.word for item in (*chosen(("all",)), *own)))
        self._rows = Rows(self.plan, self.pool, self._together, self.report, self.begins)

    def certificates(self) -> Iterator[Certificate]:
        """A certificate for every correction of the plan, as soon as it is decided."""
        needed = [item for item in self.plan.corrections if item.for_release(_executorch())]
        new = [item for item in needed if self._earlier(item) is None]
        if len(new) > 1:
            self._rows.compare_ahead(new)
        for correction in self.plan.corrections:
            yield self._certificate(correction) if correction in needed else self._not_written_for(correction)

    # ---- one certificate ------------------------------------------------------------------------------------------

    def _certificate(self, correction: Correction) -> Certificate:
        earlier = self._earlier(correction)
        shown, left = (earlier.shown, []) if earlier else self._shown(correction, (correction.word,), self._together)
        bug = any(row.bug for row in shown)
        trouble = {"corrected": left[0].message} if left else {}
        moved: list[Moved] = []
        counterexample = None
        whole = earlier.whole if earlier else None
        if bug and not trouble and self.plan.reach and whole is None:
            whole, against = self._whole(correction)
            trouble |= against
        graphs: list[ComparedCase] = []
        vela = Counter(earlier.vela if earlier else {})
        for step in _STEPS if bug and not trouble else ():
            if kept := [row for row in earlier.moved if row.cases == step.name] if earlier else []:
                moved += kept
                continue
            one = correction if step.alone else None
            words = (correction.word,) if step.alone else self._together
            match step.source:
                case "drawn":
                    rows = self._rows.graphs(one)
                case "corpus":
                    rows = self._rows.corpus(words)
                case "kin":
                    rows = self._rows.kin(correction, graphs)
            if step.name == "graphs":
                graphs = rows
            corpus = self._known(words)
            found = self._outcomes(rows, corpus, alone=step.alone)
            for target in dict.fromkeys(item.case.target for item, _ in found):
                mine = [(item.comparison, outcome) for item, outcome in found if item.case.target == target]
                reached = sum(row.reached for row, _ in mine) if step.alone else None
                outcomes = tally(outcome for _, outcome in mine)
                moved.append(Moved(cases=step.name, target=target, outcomes=outcomes, reached=reached))
            bad = [
                item
                for item, outcome in found
                if refuses(outcome, one, item.comparison, quantized=parse_target(item.case.target).quantized)
            ]
            if step.alone:
                met = [item for item, outcome in found if outcome == "vela"]
                vela.update(met_in_vela(item.comparison, corpus) for item in met)
                bad = bad or (met if too_often_in_vela(_summed(moved)) else [])
            if bad:
                counterexample = self._counterexample(bad, corpus, alone=step.alone)
                where = "nothing else moved" if step.alone else "all corrections together"
                trouble = {where: _told(counterexample, words)}
                break
        verdict, why = verdict_on(bug, trouble)
        filled = self._filled(correction, verdict, why, shown, moved, counterexample)
        return msgspec.structs.replace(filled, whole=whole, vela=dict(vela), patch=earlier.patch if earlier else "")

    def _known(self, words: Variant) -> list[Entry]:
        """What is known while corrections apply."""
        return with_corrections([*self.plan.corpus, *self.plan.programs], chosen(words))

    def _outcomes(
        self, rows: Sequence[ComparedCase], corpus: Sequence[Entry], *, alone: bool
    ) -> list[tuple[ComparedCase, Outcome]]:
        """What comparisons mean. Where a program seems worse, that is proved to be a known bug first, if it is one."""
        found = [(item, outcome_of(item.comparison, corpus, alone=alone)) for item in rows]
        worse = [item for item, outcome in found if outcome == "worse"]
        if not 0 < len(worse) <= MOST_PROVED:
            return found
        proved = {item.path: item for item in self._rows.proved(worse, corpus)}
        made = [proved.get(item.path, item) for item, _ in found]
        return [(item, outcome_of(item.comparison, corpus, alone=alone)) for item in made]

    def _earlier(self, correction: Correction) -> Certificate | None:
        """A certificate that was made already of the same correction and packages, with the same graphs."""
        found = self.plan.earlier.get(correction.name)
        if found is None or found.verdict != "certified":
            return None
        own = (correction.digest(_executorch()), dict(installed()), self._command(correction))
        return found if (found.digest, found.releases, found.command) == own else None

    def _whole(self, correction: Correction) -> tuple[Whole | None, dict[str, str]]:
        """What going through the correction's whole domain found, and what refuses it there."""
        if correction.name not in domains():
            return None, {}
        self.report(f"{correction.name}: its whole domain")
        gone = self.pool.go_through(WholeTask(correction=correction.name))
        if gone.problem:
            return None, {"whole domain": gone.problem}
        whole = msgspec.convert(msgspec.to_builtins(gone), Whole)
        return whole, {"whole domain": f"wrong, or no longer right, at {gone.first}"} if gone.first else {}

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
            command=self._command(correction),
        )

    def _command(self, correction: Correction) -> str:
        return f"armdiff certify {correction.word} --graphs {self.plan.graphs} --seed {self.plan.seed}"

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
        for place, (entry, case, path) in enumerate(cases):
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
            before = [item for item in stock.findings if not any(_is_the_bug(one, item) for one in mine)]
            for words, result in zip(variants, after, strict=True):
                corpus = self._known(words)
                [renewed] = [item for item in corpus if item.name == entry.name]
                found = remaining(renewed, result.findings, corpus, before)
                if found:  # a bug of Vela's may be known by its smallest program alone
                    [proved] = self.pool.run([Task(case=path, corrections=words, known=bugs_of(corpus))])
                    found = remaining(renewed, proved.findings, corpus, before)
                left += found
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

    # ---- counterexamples --------------------------------------------------------------------------------------------

    def _counterexample(self, bad: Sequence[ComparedCase], corpus: Sequence[Entry], *, alone: bool) -> Counterexample:
        """The smallest case that refuses, cut down while it does so alike.

        If possible one that is no bug of Vela's, and one without a stock finding.
        """

        def rank(item: ComparedCase) -> tuple[bool, int, int, str]:
            row = item.comparison
            return bool(met_in_vela(row, corpus)), len(row.stock), len(item.case.graph.nodes), item.path

        first = min(bad, key=rank)
        outcome = outcome_of(first.comparison, corpus, alone=alone)
        words = first.comparison.variant
        seen: dict[str, ComparedCase] = {}

        def still(case: Case) -> bool:
            made = self._rows.compare([self._rows.wanted(case, words)], "counterexample")
            if not made or outcome_of(made[0].comparison, corpus, alone=alone) != outcome:
                return False
            if made[0].comparison.stock and not first.comparison.stock:
                return False
            seen[case_digest(case)] = made[0]
            return True

        self.report(f"making the counterexample {first.path} smaller")
        smaller = first.case if first.case.graph.captured else smallest(first.case, still)
        found = seen.get(case_digest(smaller), first)
        if found is not first:  # made small, it may be another bug, and a known one
            [(_, now)] = self._outcomes([found], corpus, alone=alone)
            found = found if now == outcome else first
        row = found.comparison
        return Counterexample(
            case=found.path,
            target=found.case.target,
            outcome=outcome,
            what=row.apart or next((item.message for item in row.corrected), row.what),
            chain=operator_chain(found.case.graph),
            nodes=len(found.case.graph.nodes),
            vela=met_in_vela(row, corpus),
            stock=by_bucket(row.stock),
            corrected=by_bucket(row.corrected),
        )


def _summed(moved: Sequence[Moved]) -> Counter[str]:
    """Outcomes of a correction alone, over all cases and targets."""
    return sum((Counter(row.outcomes) for row in moved), Counter())


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
