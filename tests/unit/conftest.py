"""Unit tests start no process and lower nothing: what does is in ``tests/integration``."""

import sys

import pytest

PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")
started = []


def note(event, arguments):
    if event in PROCESSES:
        started.append(f"{event}: {arguments[0] if arguments else ''}")


sys.addaudithook(note)


@pytest.fixture(autouse=True)
def no_process():
    """Fail a test that starts a process."""
    before = len(started)
    yield
    assert started[before:] == []
