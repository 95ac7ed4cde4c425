"""Hostile inputs: a few of them, and that a reader which raises is seen (``tox run -e hostile`` runs ten thousand)."""

from tests.hostile import __main__ as hostile


def test_a_few_mutations_are_read_or_refused(capsys):
    assert hostile.main(["--inputs", "150", "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "raised" not in said
    assert "refused in one line" in said


def test_a_reader_that_raises_is_seen(monkeypatch, capsys):
    def broken(_):
        raise IndexError("planted")

    monkeypatch.setattr(hostile, "read_case", broken)
    assert hostile.main(["--inputs", "60"]) == 1
    assert "case: IndexError at" in capsys.readouterr().out


def test_a_verb_that_raises_is_seen(monkeypatch, capsys):
    def broken(_):
        raise IndexError("planted")

    monkeypatch.setattr("harness.artifacts.npz.decode_npz", broken)
    assert hostile.main(["--inputs", "200"]) == 1
    assert "disasm .npz: IndexError at" in capsys.readouterr().out


def test_a_refusal_of_several_lines_is_seen(monkeypatch, capsys):
    monkeypatch.setattr("harness.cli.disasm._HOW", "give\na file")
    assert hostile.main(["--inputs", "200"]) == 1
    assert "refused in several lines" in capsys.readouterr().out
