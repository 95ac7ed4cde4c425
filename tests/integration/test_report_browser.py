"""The report of a run in a real browser: it loads nothing, fits a phone, is drawn in light and dark, filters and sorts.

Skipped where there is no Chromium or Chrome: install one, or put it on PATH.
"""

import html
import re
import shutil
import struct
import subprocess

import pytest

from harness.campaign.run_folder import Minimized
from harness.reports.reporting import write_reports
from tests.unit.reporting_runs import drawn, each_target, entry, finding, join_case, make_run

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
PHONE, HIGH = 390, 800
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
MEASURE = """<script>
const style = getComputedStyle(document.body), outside = [];
const tell = (name, what) => parent.document.documentElement.setAttribute(`data-${frameElement.id}-${name}`, what);
for (const item of document.querySelectorAll("main *, header *")) {
  const box = item.getBoundingClientRect(), name = item.tagName + "." + item.className;
  if (box.width && box.right > innerWidth + 1 && !item.closest(".wide, pre")) outside.push(name);
}
tell("wide", document.documentElement.scrollWidth + " of " + innerWidth);
tell("outside", outside.join(" "));
tell("ink", style.color + " on " + style.backgroundColor);
const wide = [...document.querySelectorAll(".shaded")].filter((item) => item.scrollWidth > item.clientWidth + 1);
const ends = (item) => (item.scrollLeft = 1e6, item.scrollLeft >= item.scrollWidth - item.clientWidth - 1);
const scrolls = wide.every(ends);
tell("graphs", wide.length + (scrolls ? " scroll" : " are cut"));
tell("loaded", performance.getEntriesByType("resource").length);
</script>"""
"""Writes what it sees into the page around, whose frames may be narrower than any window of a browser."""

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser on PATH (looked for {', '.join(NAMES)})")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with everything on it: long words, many targets, pictures, a previous run."""
    folder = tmp_path_factory.mktemp("run")
    long = "x" * 300
    sizes = ({"distance": float(2**power), "unit": "steps", "output": 0} for power in range(12))
    found = [finding(measured=measured, message=f"off {long}", detail=long) for measured in sizes]
    known = finding("crash", "exception", stage="lower", signature=long.replace("x", "y"), chain=("relu",) * 30)
    cases = [
        item for place, one in enumerate(found) for item in each_target(*["relu"] * (place + 1), findings=[one, known])
    ]
    cases += [(join_case(), {"findings": [finding("qparams", "clamp lost", blamed="RewriteConvPass")]})]
    cases += [
        (case, {"legs": {"eager": long}, "seconds": {"lower": 2.5, "vela": 0.1}}) for graph in drawn() for case in graph
    ]
    item = Minimized(
        bucket=finding().bucket,
        final=f"{finding().bucket}{long}",
        origin="",
        case=f"cases/{'0' * 12}.json",
        operators=("relu",),
        state="stopped",
        distinguishes=long,
        repro=long,
    )
    run = make_run(folder, cases, minimized=[item], left=[long], problems=[long])
    write_reports(run, [entry("known-one", known, upstream=(f"https://example.org/{long}",))], run, folder)
    return folder / "report.html"


def browse(page, folder, *options):
    """Open a page; what the browser printed."""
    command = [
        *(
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--hide-scrollbars",
        ),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={folder / 'profile'}", f"--window-size={PHONE},{HIGH}", *options, page.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def told_by_frames(frames, folder):
    """What scripts wrote into the page around their frames; a start of a browser takes longer than all that they do.

    :param frames: name -> width and page.
    """
    copy = folder / "frames.html"
    style = f'height="{HIGH}" style="border: 0"'
    copy.write_text(
        "<!doctype html>"
        + "".join(
            f'<iframe id="{name}" width="{wide}" {style} srcdoc="{html.escape(text)}"></iframe>'
            for name, (wide, text) in frames.items()
        )
    )
    page = re.search("<html[^>]*>", browse(copy, folder, "--dump-dom")).group()
    found = {name: {} for name in frames}
    for name, what, value in re.findall(r'data-(\w+)-(\w+)="([^"]*)"', page):
        found[name][what] = value
    return found


@pytest.fixture(scope="module")
def measured(report, tmp_path_factory):
    """What a script, put into copies of the page, found in frames of several widths."""
    plain = POLICY.sub("", report.read_text()).replace("</body>", f"{MEASURE}</body>")
    opened = plain.replace("<details", "<details open")
    frames = {
        "phone": (PHONE, plain),
        "opened": (PHONE, opened),
        "narrow": (300, opened),
        "desktop": (1280, plain),
        "dark": (PHONE, plain.replace("(prefers-color-scheme: dark)", "all")),
    }
    return told_by_frames(frames, tmp_path_factory.mktemp("measured"))


@pytest.mark.parametrize("frame", ["phone", "opened"])
def test_a_phone_does_not_scroll_sideways(measured, frame):
    assert measured[frame]["outside"] == ""
    assert measured[frame]["wide"] == f"{PHONE} of {PHONE}"


def test_a_desktop_does_not_scroll_sideways(measured):
    assert measured["desktop"]["wide"] == "1280 of 1280"


def test_a_graph_wider_than_its_place_scrolls_to_its_end(measured):
    count, what = measured["narrow"]["graphs"].split(" ", 1)
    assert int(count) >= 1
    assert what == "scroll"


CHOOSE = """<script nonce=of-this-test>
const pick = (field, value) => {
  const select = document.querySelector(field); select.value = value;
  select.dispatchEvent(new Event("change", {bubbles: true}));
};
%s
const shown = [...document.querySelectorAll("[data-rank]")].filter((bug) => bug.offsetParent);
const tell = (name, what) => parent.document.documentElement.setAttribute(`data-${frameElement.id}-${name}`, what);
tell("shown", shown.map((bug) => bug.dataset.rank).join(" "));
tell("told", document.querySelector("#filter p").textContent);
</script>"""
"""Chooses in the page's own filter, whose script has to run under the page's own policy first."""
CHOICES = {
    "nothing": ("", "1 2 3"),
    "state": ("pick('[data-field=state]', 'known')", "3"),
    "oracle": ("pick('[data-field=oracle]', 'qparams')", "2"),
    "target": ("pick('[data-field=target]', 'ethos-u55-128')", "1 3"),
    "blamed": ("pick('[data-field=pass]', 'RewriteConvPass')", "2"),
    "order": ("document.querySelector('[data-rank=\"2\"]').dataset.cases = 999; pick('#order', 'cases')", "2 1 3"),
    "two": ("pick('[data-field=pass]', 'none'); pick('[data-field=state]', 'new')", "1"),
}


@pytest.fixture(scope="module")
def filtered(report, tmp_path_factory):
    """What the page shows of each choice."""
    written = report.read_text()
    digest = re.search("'sha256-[^']*'", written).group()
    text = written.replace(digest, f"{digest} 'nonce-of-this-test'")
    frames = {
        name: (PHONE, text.replace("</body>", f"{CHOOSE % choices}</body>")) for name, (choices, _) in CHOICES.items()
    }
    return told_by_frames(frames, tmp_path_factory.mktemp("filtered"))


@pytest.mark.parametrize("name", CHOICES)
def test_bugs_are_filtered_and_sorted(filtered, name):
    _, shown = CHOICES[name]
    assert filtered[name]["shown"] == shown
    assert filtered[name]["told"] == f"{len(shown.split())} of 3 bugs are shown"


def test_without_scripts_every_bug_is_there_and_the_filter_is_not(report, tmp_path):
    text = re.sub("script-src '[^']*'", "script-src 'none'", report.read_text())
    copy = tmp_path / "copy.html"
    copy.write_text(text)
    seen = browse(copy, tmp_path, "--dump-dom")
    assert re.search('<div id="filter"[^>]* hidden', seen)
    assert len(re.findall('data-rank="\\d"', seen)) == 3
    assert not re.search('data-rank="[^>]* hidden', seen)


def test_nothing_is_loaded(measured):
    assert measured["phone"]["loaded"] == "0"


def test_dark_mode_turns_the_page_over(measured):
    def brightness(colour):
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    for frame, dark in (("phone", False), ("dark", True)):
        ink, ground = measured[frame]["ink"].split(" on ")
        assert (brightness(ink) > brightness(ground)) == dark
        assert abs(brightness(ink) - brightness(ground)) > 400


def test_the_browser_understands_the_page_as_it_was_written_and_draws_it(report, tmp_path):
    picture = tmp_path / "page.png"
    seen = browse(report, tmp_path, "--dump-dom", f"--screenshot={picture}")
    written = report.read_text()
    for tag in ("<article", "<svg", "<table", "<details", "<rect", "<figure", "<tr"):
        assert seen.count(tag) == written.count(tag), tag
    assert "2 new bugs" in re.search("<title>.*</title>", seen).group()
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (PHONE, HIGH)
    assert len(data) > 10_000  # an empty page is far smaller
