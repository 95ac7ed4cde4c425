"""How questions and answers (``harness.workers.protocol``) travel: msgpack frames over a pipe.

A frame is four bytes of length, little-endian, then msgpack. No pickle, and nothing in a frame is executed.
A new question has its answer in ``refused``, too.
"""

from __future__ import annotations

from typing import IO

import msgspec

from harness.workers.protocol import (
    Captured,
    CaptureTask,
    CaseResult,
    Compared,
    CompareTask,
    EmitTask,
    Emitted,
    Ended,
    Gone,
    Masked,
    MaskTask,
    Run,
    Serves,
    Stage,
    SuiteFile,
    SuiteTask,
    SweepTask,
    Swept,
    Task,
    Timed,
    TimeTask,
    WholeTask,
)

Question = Task | CaptureTask | SuiteTask | EmitTask | CompareTask | WholeTask | SweepTask | TimeTask | MaskTask
Answer = CaseResult | Captured | SuiteFile | Emitted | Compared | Gone | Swept | Timed | Masked
Message = Question | Stage | Run | Serves | Ended | Answer


def graph_of(task: Question) -> str:
    """The graph whose case a question is about; empty where no other question has to do with it."""
    return task.graph if isinstance(task, Task) and not task.apart else ""


def named_by(task: Question) -> str:
    """The file that a task is about, for messages."""
    match task:
        case CaptureTask() | SuiteTask():
            return task.file
        case SweepTask() | TimeTask():
            return task.cases[0] if len(task.cases) == 1 else f"{task.cases[0]} and {len(task.cases) - 1} more"
    return task.case


def refused(task: Question, problem: str) -> Answer:
    """The answer to a task that cannot be done: the reason, in one line."""
    match task:
        case EmitTask():
            return Emitted(problem=problem)
        case CaptureTask():
            return Captured(problem=problem)
        case SuiteTask():
            return SuiteFile(file=task.file, problem=problem)
        case CompareTask():
            return Compared(case=task.case, problem=problem)
        case WholeTask():
            return Gone(problem=problem)
        case SweepTask():
            return Swept(problem=problem)
        case MaskTask():
            return Masked(problem=problem)
    return CaseResult(case=named_by(task), problem=problem)


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def send(stream: IO[bytes], message: Message) -> None:
    """Write one frame and flush it."""
    data = _encoder.encode(message)
    stream.write(len(data).to_bytes(4, "little") + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Message | None:
    """Read one frame; None at the end of the stream (also in the middle of a frame)."""
    header = stream.read(4)
    if len(header) < 4:
        return None
    size = int.from_bytes(header, "little")
    data = stream.read(size)
    return _decoder.decode(data) if len(data) == size else None


def asked(stream: IO[bytes]) -> Question | None:
    """Read the next question; None at the end of the stream."""
    message = receive(stream)
    assert message is None or isinstance(message, Question)
    return message
