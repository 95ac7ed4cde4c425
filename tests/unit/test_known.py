"""What ``--known`` and ``--ignore`` take, and what they say of what they do not."""

import json

import msgspec
import pytest

from harness.case.errors import BadInput
from harness.case.place import Place, PlacedOperator
from harness.compat.releases import basis_of, line_named
from harness.tosa.versions import tally_of
from harness.triage.conditions import Condition
from harness.triage.corpus import corpus_folders, known_by, with_corrections
from harness.triage.findings import Finding
from harness.triage.given import known_entries
from harness.triage.program_entries import program_entries

BUCKET = "v1/numeric/outside-rounding/run/SomePass/TOSA/"


def finding(bucket=BUCKET, target="TOSA-1.0+INT"):
    return Finding(
        bucket=bucket, oracle="numeric", kind="outside rounding", target=target, stage="run", message="m", case="c"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"{BUCKET}\n",
        f"# why\n\n  {BUCKET}   # a comment\n",
        f"{BUCKET}#relu>add",
        json.dumps({"findings": [{"bucket": BUCKET}]}),
    ],
)
def test_a_file_of_buckets_makes_them_known_on_every_target(tmp_path, text):
    file = tmp_path / "known.txt"
    file.write_text(text)
    corpus = known_entries((), (file,))
    assert known_by(corpus, finding()).status.upstream == (str(file),)
    assert known_by(corpus, finding(BUCKET.replace("TOSA/", "ethos-u85/"), "ethos-u85-256")) is not None
    assert known_by(corpus, finding(BUCKET.replace("SomePass", "OtherPass"))) is None


def test_ignored_buckets_are_known():
    assert known_by(known_entries((), (), (BUCKET,)), finding()).name == "--ignore"


def test_a_corpus_folder_an_entry_and_a_status_file_are_taken_as_corpus(tmp_path):
    entry = tmp_path / "corpus" / "a-bug"
    entry.mkdir(parents=True)
    (entry / "status.toml").write_text('title = "t"\nexpires = 2030-01-01\n')
    for path in (tmp_path / "corpus", entry, entry / "status.toml"):
        assert [item.name for item in known_entries((), (path,))] == ["a-bug"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v1/numeric", r"known\.txt: line 1.*is no bucket; write one as reports do"),
        (f"{BUCKET}\nSomePass", r"known\.txt: line 2"),
        ("{", r"known\.txt.*holds no findings; give what 'armdiff fuzz --json FILE' wrote"),
        ('{"findings": [{}]}', "holds no findings"),
        (b"\xff\xfe\x00", "it is no text"),
    ],
)
def test_other_files_are_refused_in_one_clear_line(tmp_path, text, message):
    file = tmp_path / "known.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=message) as error:
        known_entries((), (file,))
    assert "\n" not in str(error.value)


def test_what_is_missing_is_said_to_be_missing(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        known_entries((), (tmp_path / "nothing",))


def test_an_ignored_word_that_is_no_bucket_is_refused():
    with pytest.raises(BadInput, match=r"--ignore.*is no bucket"):
        known_entries((), (), ("numeric",))


def test_a_bug_of_programs_is_known_elsewhere_by_its_smallest_program_alone():
    corpus = known_entries(corpus_folders(), vela="5.1.0")
    name = "vela-conv3d-stride-in-depth-of-slice"
    [entry] = [item for item in corpus if item.name == name]
    slice_, conv = PlacedOperator(op="SLICE"), PlacedOperator(op="CONV3D", reads=(0,))
    shown = msgspec.structs.replace(
        finding(entry.everywhere.bucket, "ethos-u55-128"),
        chain=("SLICE", "CONV3D"),
        place=Place(graph="tosa", operators=(slice_, conv), here=(1,)),
    )
    reduced = msgspec.structs.replace(shown, fingerprint=entry.status.fingerprints[0])
    assert (known_by(corpus, reduced).name, entry.resembles(shown)) == (name, False)
    bug = msgspec.structs.replace(entry.bug, conditions=(Condition(path=("SLICE", "CONV3D")),))
    assert (bug.proof(shown), bug.proof(reduced)) == (None, bug.conditions[0])
    [own] = [item for item in tally_of("5.1.0", corpus, None).corpus if item.name == name]
    assert own.resembles(shown), "the engine's own entry: the one that is not reduced"


def test_programs_are_known_of_the_version_of_vela_that_ran():
    fixed = {entry.name for entry in program_entries("5.2.0") if entry.bug is None}
    assert fixed
    names = {entry.name for entry in known_entries(corpus_folders(), vela="5.2.0") if entry.bug is not None}
    older = {entry.name for entry in known_entries(corpus_folders(), vela="5.1.0") if entry.bug is not None}
    assert not fixed & names
    assert fixed & older


def test_a_bug_of_vela_is_known_on_every_line_with_that_vela():
    """What a case shows depends on the front end: on a line where it does not come to its bug, others may."""
    [entry] = [item for item in known_entries(corpus_folders()) if item.name == "vela-blockdep-transposed"]
    assert entry.status.lines["et141"].status == "hidden"
    older, newer = (basis_of(line_named(line).releases) for line in ("et141", "default"))
    on_older, on_newer = (msgspec.structs.replace(entry, basis=item).bug for item in (older, newer))
    assert on_older == on_newer is not None
    [whole] = with_corrections([msgspec.structs.replace(entry, basis=older)], ())
    assert whole.bug == on_older, "no correction is applied"
    fixed = {"default": entry.status.lines["et141"], "et141": entry.status.lines["et141"]}
    nowhere = msgspec.structs.replace(entry, status=msgspec.structs.replace(entry.status, lines=fixed), basis=older)
    assert nowhere.bug is None
    ours = msgspec.structs.replace(
        entry, status=msgspec.structs.replace(entry.status, package="executorch"), basis=older
    )
    assert ours.bug is None
