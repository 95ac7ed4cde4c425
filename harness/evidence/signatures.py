"""The signature of a failure: what stays equal while a case shrinks.

Exception type, message without names and numbers, and the last upstream frame, separated by bars. Failures with the
same signature at the same stage share a bucket.
"""

from __future__ import annotations

import re

from harness.evidence.observation import Failure, headline

SIGNATURE_LENGTH = 120
_SET = re.compile(r"\{([^{}]*)\}")
_SUBSTITUTIONS = (
    (re.compile(r"TOSA-\d[\d.]*(?:\+\w+)*"), "TOSA"),  # the target's profile is not part of the cause
    (re.compile(r"0x[0-9a-fA-F]+"), "H"),
    (re.compile(r"-nan\b"), "nan"),  # its sign is the processor's
    (re.compile(r"(?:/[\w.+-]+){2,}"), "PATH"),
    (re.compile(r"\b(?:getitem|[a-z][a-z0-9]*(?:_[a-z0-9]+)+)\b"), "NAME"),
    (re.compile(r"\b[nxk]\d+\b"), "NAME"),
    (re.compile(r"'\([A-Za-z]\w*, [A-Za-z]\w*\)'"), "'EDGE'"),  # as torchao prints one
    (re.compile(r"\bs\d+\b"), "N"),  # a size that torch.export took for a symbol
    (re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "N"),
    (re.compile(r"(?:N, )+N"), "N"),
    (re.compile(r"\s+"), " "),
)


def normalized(message: str) -> str:
    """A message without addresses, paths, node names, numbers and line breaks; sets print in any order, here in one."""
    text = _SET.sub(lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}", headline(message))
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return text.strip()[:SIGNATURE_LENGTH]


def signature(failure: Failure) -> str:
    """What identifies the cause of a failure, independent of the case's names and sizes."""
    return "|".join((failure.type, normalized(failure.message), failure.frame or "-"))
