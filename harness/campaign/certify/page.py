"""A certificate as a Markdown page that a maintainer reads in two minutes.

Verdict first, then the bug on its cases, what else was compared, what the correction changes, and how
to make the certificate again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.campaign.certify.deciding import OUTCOMES
from harness.campaign.certify.evidence import Certificate, Counterexample, Whole, reach_of
from harness.case.wording import counted_as

_LONGEST = 240
_MEANING = {
    "same": "the same program",
    "equal": "another program, right, with the same outputs",
    "rounded": "another program, right, with other rounding",
    "right": "stock was wrong; right now",
    "better": "stock was wrong; less is now",
    "alike": "stock was wrong; as before",
    "uncovered": "stock was wrong; another known bug shows now, or one of Vela's that stock never came to",
    "vela": "right as TOSA, compiled wrong by Vela",
    "worse": "wrong where stock was not",
}
_BRIEF = {
    "same": "the same program",
    "equal": "another program with the same outputs",
    "rounded": "another program with other rounding",
    "right": "right where stock was wrong",
    "better": "less wrong than stock",
    "alike": "as wrong as stock",
    "uncovered": "wrong by another bug",
    "vela": "compiled wrong by Vela",
    "worse": "wrong where stock was right",
}


def markdown(certificate: Certificate) -> str:
    """The page."""
    return "\n".join(_lines(certificate)) + "\n"


def in_brief(certificate: Certificate) -> str:
    """Verdict, reason and how many graphs were compared, in two sentences."""
    version = certificate.releases.get("executorch", "")
    text = f"armdiff's verdict on executorch {version}: {certificate.verdict}, {certificate.why}."
    drawn = [row for row in certificate.moved if row.cases == "graphs"]
    corpus = sum(sum(row.outcomes.values()) for row in certificate.moved if row.cases == "corpus")
    if not drawn:
        return text
    counted = "; ".join(f"{row.target}: {_counts(row.outcomes)}" for row in drawn)
    text = f"{text} Compared with stock: drawn graphs ({counted}) and {corpus} cases of the corpus."
    if reach_of(certificate) is not None:
        text = f"{text} {reach_in_words(certificate)}"
    if certificate.vela:
        text = f"{text} {vela_in_words(certificate)}"
    return f"{text} {whole_in_words(certificate.whole)}" if certificate.whole else text


def reach_in_words(certificate: Certificate) -> str:
    """How many graphs came to the corrected code, and what it made of them, in two sentences."""
    reach = reach_of(certificate)
    if reach is None:
        return "How many graphs came to the edited lines was not counted when this was made."
    came = f"{reach.reached} of {counted_as(reach.tried, 'graph')} came to the edited lines"
    became = f"became another program, on {reach.right} of which every oracle passes."
    if certificate.needs:  # what else is applied changes graphs that never come to these lines
        return f"{came}; {reach.changed} of {reach.tried} {became}"
    text = f"{came}; {reach.changed} of them {became}"
    left = reach.reached - reach.changed
    if left <= 0:
        return text
    return f"{text} On the other {left} the same was left both ways by whatever holds an edit."


def vela_in_words(certificate: Certificate) -> str:
    """What the correction leads to in Vela, where stock's program is compiled right."""
    told = "; ".join(f"{counted_as(count, 'graph')}: {what}" for what, count in certificate.vela.items())
    asked = f"armdiff check MODEL --target ethos-u… --correction {certificate.name}"
    return (
        f"The corrected program is right, and Vela compiles it wrong where it compiles stock's right, in {told}. "
        f"`{asked}` says whether a model meets that."
    )


def whole_in_words(whole: Whole) -> str:
    """What going through a whole domain found."""
    lost = f"; {whole.lost} that the installed one does right are lost" if whole.lost else ", and nothing right is lost"
    return (
        f"All {whole.points:,} points of {whole.says}. The installed function is wrong at {whole.wrong:,} of them, the "
        f"corrected one at {whole.corrected_wrong:,}{lost}."
    )


def _counts(outcomes: Mapping[str, int]) -> str:
    parts = [f"{outcomes[name]} {_BRIEF[name]}" for name in OUTCOMES if outcomes.get(name)]
    if len(parts) == 1:
        return f"all {parts[0]}"
    return f"{sum(outcomes.values())}, of them {', '.join(parts)}"


def _lines(item: Certificate) -> Iterator[str]:
    releases = ", ".join(f"{name} {version}" for name, version in item.releases.items())
    yield f"# `{item.name}`: {item.verdict}"
    yield ""
    yield f"{item.why[:1].upper()}{item.why[1:]}."
    yield ""
    yield f"Release line {item.line}: {releases}."
    if item.workaround:
        yield ""
        yield "**A workaround**: the defect is not ExecuTorch's; the pattern is kept away from the tool that has it."
    yield ""
    yield f"* Cause: {item.cause}"
    yield f"* Change: {item.change}"
    if item.upstream:
        yield f"* Upstream: {', '.join(item.upstream)}"
    if item.needs:
        yield f"* Applied along with it, for the bugs that it leads to: {', '.join(item.needs)}"
    yield f"* Written for executorch {', '.join(item.written_for)}"
    if item.shown:
        yield ""
        yield "## The bug's corpus cases"
        yield ""
        yield "| case | target | stock | corrected | all corrections together | legs that ran |"
        yield "|---|---|---|---|---|---|"
        for row in item.shown:
            cells = (_findings(row.stock), _findings(row.corrected), _findings(row.together))
            yield f"| {row.entry} | {row.target} | {' | '.join(cells)} | {', '.join(row.legs)} |"
        yield ""
        for row in item.shown:
            if row.bug:
                yield f"Stock, {row.entry} on {row.target}:"
                yield ""
                for bucket, message in row.stock.items():
                    yield f"* `{bucket}`: {_short(message)}"
                yield ""
    if item.moved:
        names = [name for name in OUTCOMES if any(name in row.outcomes for row in item.moved)]
        yield "## What else was compared"
        yield ""
        yield f"Seed {item.seed}; drawn graphs hold the operators that the correction touches, kin are like the bug's."
        yield ""
        yield reach_in_words(item)
        yield ""
        yield f"| cases | target | came to the edit | {' | '.join(_MEANING[name] for name in names)} |"
        yield f"|---|---|---|{'---|' * len(names)}"
        for kind in item.moved:
            reached = "" if kind.reached is None else str(kind.reached)
            counts = " | ".join(str(kind.outcomes.get(name, 0)) for name in names)
            yield f"| {kind.cases} | {kind.target} | {reached} | {counts} |"
        yield ""
    if item.vela:
        yield vela_in_words(item)
        yield ""
    if item.whole:
        yield "## Its whole domain"
        yield ""
        yield whole_in_words(item.whole)
        yield ""
    if item.counterexample:
        yield from _counterexample(item.counterexample)
    if item.functions:
        yield "## What it changes"
        yield ""
        yield "| place | digest installed | digest corrected |"
        yield "|---|---|---|"
        for function in item.functions:
            yield f"| `{function.module}:{function.place}` | {function.installed} | {function.corrected} |"
        yield ""
    if item.patch:
        release = item.releases.get("executorch", "")
        yield f"Patch: `{item.patch}` beside this page; `git apply` takes it in ExecuTorch {release}."
        yield ""
    yield f"Digest of the correction {item.digest}. To make this certificate again: `{item.command}`"


def _counterexample(item: Counterexample) -> Iterator[str]:
    yield "## Counterexample"
    yield ""
    meaning = _MEANING.get(item.outcome, item.outcome)
    yield f"`{' -> '.join(item.chain)}` on {item.target}, case `{item.case}`: {meaning}."
    yield ""
    yield f"* {_short(item.what)}"
    for title, findings in (("stock", item.stock), ("corrected", item.corrected)):
        yield f"* {title}: {'every oracle passes' if not findings else ''}"
        for bucket, message in findings.items():
            yield f"  * `{bucket}`: {_short(message)}"
    yield ""


def _findings(findings: Mapping[str, str]) -> str:
    return ", ".join(_kinds(findings)) or "passes"


def _kinds(buckets: Iterable[str]) -> list[str]:
    """``numeric: outside-rounding`` of each bucket."""
    words = [bucket.split("/") for bucket in buckets]
    return list(dict.fromkeys(": ".join(word[1:3]) if len(word) > 2 else word[0] for word in words))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
