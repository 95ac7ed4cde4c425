"""Call sites beside a case: written, read, absent, damaged; and what they are read from."""

import pytest

from harness.case.call_sites import CallSite, node_called, read_call_sites, write_call_sites
from harness.compat.states import _call, _place

SITES = {
    "conv2d": CallSite(module="stem.conv", file="m.py", path="/w/m.py", line=7),
    "relu": CallSite(module="1", file="m.py", path="/w/m.py"),
}


def test_call_sites_are_read_as_they_were_written(tmp_path):
    write_call_sites(tmp_path, SITES)
    assert read_call_sites(tmp_path / "case.json") == SITES
    assert list(map(str, SITES.values())) == ["m.py:7", "m.py"]


@pytest.mark.parametrize("text", [None, "{", '{"conv2d": {"line": "x"}}'])
def test_a_case_without_readable_call_sites_has_none(tmp_path, text):
    if text is not None:
        (tmp_path / "call_sites.json").write_text(text)
    assert read_call_sites(tmp_path / "case.json") == {}


def test_a_node_is_found_by_name_and_by_line():
    assert [node_called(call, SITES) for call in ("relu", "/w/m.py:7", "/w/m.py:9")] == ["relu", "conv2d", "/w/m.py:9"]


CASE = """  File "/w/harness/pipeline/lowering.py", line 3, in run
    model(x)
  File "<armdiff case 0123456789ab>", line 53, in forward
    conv0 = self.conv0(x)
  File "/env/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 500, in forward
    return self._conv_forward(input, self.weight, self.bias)
"""
FLOAT = """  File "<armdiff case 0123456789ab>", line 60, in forward
    n1 = self.n1(conv0)
  File "<armdiff case 0123456789ab>", line 12, in forward
    return torch.relu(a0)
"""
USER = """  File "/w/m.py", line 8, in forward
    y = self.body(x)
  File "/w/blocks.py", line 3, in forward
    return torch.relu(x)
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 9, in relu
    return torch.relu(input)
"""


@pytest.mark.parametrize(("stack", "call"), [(CASE, "conv0"), (FLOAT, "n1"), (USER, "/w/blocks.py:3"), ("", "")])
def test_a_stack_tells_the_case_s_node_or_the_user_s_line(stack, call):
    assert _call(stack) == call


def test_packages_are_not_the_user_s():
    assert _place(USER.splitlines()[-2]) is None
