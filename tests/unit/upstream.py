"""An installed upstream module with a text of the test's own."""

import importlib
import sys

MODULE = "executorch_like.passes"
RELEASE = "9.9.9"


def installed_module(text, tmp_path, monkeypatch):
    """The module, imported anew, as part of an executorch release of its own."""
    package, name = MODULE.split(".")
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("harness.corrections.source.installed", lambda: {"executorch": RELEASE})
    monkeypatch.setattr("harness.corrections.source.text_of", lambda module: text)
    for module in (package, MODULE):
        monkeypatch.delitem(sys.modules, module, raising=False)
    importlib.invalidate_caches()
    return importlib.import_module(MODULE)
