"""The list of annotated operators is the installed release's."""

import inspect
import re

from tests.annotated import ANNOTATED


def test_the_list_of_annotated_operators_is_the_installed_one():
    from executorch.backends.arm.quantizer import quantization_annotator

    code = (line.split("#")[0] for line in inspect.getsource(quantization_annotator).splitlines())
    assert sorted(set(re.findall(r"torch\.ops\.([a-z_]+\.\w+)", "\n".join(code)))) == list(ANNOTATED)
