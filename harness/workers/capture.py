"""Capture a user's own model as a case: an ATen graph by torch.export, tensors in safetensors.

The file is Python and defines ``model`` (an ``nn.Module``) and ``calibration`` (a list of input
tuples), optionally ``inputs`` (tuples to evaluate) and ``configure`` (a function that receives
the quantizer). Everything that is wrong with it is one line: the file, the name, the remedy.

What ``configure`` leaves float (``set_module_name`` or ``set_module_type`` with ``None``) is
recorded as the recipe's ``float=`` nodes, and what it gives other widths as ``a16w8=`` and the like,
so that the stored case replays without the file; a run of ``check`` itself uses the real function
on the real module.

Where in the user's files each node was called is written beside the case (``harness.case.call_sites``).

Executes the user's file and imports torch; runs in worker processes only.
"""

from __future__ import annotations

import copy
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.numpy import save_file

from harness.case.arrays import Array
from harness.case.call_sites import CallSite, write_call_sites
from harness.case.case import Case, Distribution, encode_case
from harness.case.checking import check_case
from harness.case.errors import BadInput
from harness.case.recipe import QUANTIZED_WIDTHS, Recipe, parse_recipe
from harness.compat.states import called_at
from harness.compat.torchvision_kernels import spare_missing_kernels
from harness.pipeline.state import state_kept
from harness.workers.exported_graph import array_of, graph_of
from harness.workers.protocol import Captured, CaptureTask

TENSORS = "tensors.safetensors"


@dataclass(frozen=True)
class CapturedModel:
    """A model as a case, not written yet.

    :param tensors: by the names that the case has for them.
    :param sites: where each call is made, by its node's name.
    """

    case: Case
    tensors: dict[str, Array]
    sites: dict[str, CallSite]


def capture_file(task: CaptureTask) -> Captured:
    """Capture ``task.file`` into ``task.folder``/case.json and tensors.safetensors.

    :raises BadInput: what is wrong with the file.
    """
    file = Path(task.file)
    return _written(_captured(load_file(file), file, task.target, task.recipe), Path(task.folder))


def capture_model(names: dict[str, Any], where: str, folder: Path, target: str, recipe: str) -> Captured:
    """Capture a model at hand into ``folder``, as ``captured_model`` does."""
    return _written(captured_model(names, where, target, recipe), folder)


def captured_model(names: dict[str, Any], where: str, target: str, recipe: str) -> CapturedModel:
    """Capture a model at hand: ``names`` holds what a user's file would define. The model is left as it was.

    :param where: what messages call its origin.
    :raises BadInput: what is wrong with it.
    """
    file = Path(where)
    own = {**names, "model": copy.deepcopy(names["model"])}
    _check_names(file, own)
    return _captured(own, file, target, recipe)


def _written(made: CapturedModel, folder: Path) -> Captured:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(made.tensors, folder / TENSORS)
    (folder / "case.json").write_bytes(encode_case(made.case))
    write_call_sites(folder, made.sites)
    return Captured(case=str(folder / "case.json"))


def _captured(names: dict[str, Any], file: Path, target: str, recipe_words: str) -> CapturedModel:
    exported = _export(file, names)
    captured = graph_of(str(file), exported)
    graph, tensors = captured.graph, dict(captured.tensors)
    for index, sample in enumerate(names["calibration"]):
        for item, tensor in zip(graph.inputs, tensors_in(tuple(sample)), strict=True):
            tensors[f"calibration.{item.name}.{index}"] = array_of(tensor)
    for index, sample in enumerate(names.get("inputs") or ()):
        for item, tensor in zip(graph.inputs, tensors_in(tuple(sample)), strict=True):
            tensors[f"given.{index}.{item.name}"] = array_of(tensor)
    nodes = {node.name for node in graph.nodes}
    recipe = parse_recipe(recipe_words)
    apart = {name: said for name, said in _set_apart(file, names.get("configure"), exported) if name in nodes}
    if recipe.widths != "float":
        recipe = _with_nodes(recipe, apart)
    case = Case(
        graph=graph,
        recipe=str(recipe),
        target=target,
        samples=len(names["calibration"]),
        calibration={
            item.name: Distribution(kind="recorded", parameters={"prefix": f"calibration.{item.name}"})
            for item in graph.inputs
        },
        tensors=TENSORS,
        note=f"captured from {file.name}; holds the weights of that model",
    )
    check_case(case)
    return CapturedModel(case, tensors, _call_sites(exported, nodes, file, type(names["model"]).__name__))


def _call_sites(exported: Any, nodes: Set[str], file: Path, model: str) -> dict[str, CallSite]:
    """Where each call is made, by its node's name.

    :param nodes: the case's.
    :param file: stands for a line that none of the user's files has.
    :param model: stands for the path of the model itself.
    """
    found, here = {}, Path.cwd()
    for node in exported.graph.nodes:
        if node.name not in nodes:
            continue
        path, line = called_at(node) or (file.absolute(), 0)
        modules = [str(path) for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        inside = modules[-1].removeprefix("L['self']").removeprefix(".") if modules else ""
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        found[node.name] = CallSite(module=inside or model, file=str(shown), path=str(path), line=line)
    return found


def tensors_in(nested: Any) -> tuple[torch.Tensor, ...]:
    """The tensors of a sample or a result, in order: the inputs and the outputs of a captured graph."""
    leaves = torch.utils._pytree.tree_leaves(nested)
    return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def on_tensors(model: torch.nn.Module, sample: Any) -> torch.nn.Module:
    """A user's model as a captured graph is called: with the tensors of a sample, for the tensors of the result.

    It is the model itself under a class of the same name, so that its submodules keep their names.
    """
    leaves, structure = torch.utils._pytree.tree_flatten(tuple(sample))
    kind = type(model)

    def forward(self: Any, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = iter(tensors)
        filled = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return tensors_in(kind.forward(self, *torch.utils._pytree.tree_unflatten(filled, structure)))

    names = {"forward": forward, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    model.__class__ = type(kind.__name__, (kind,), names)
    return model


def load_file(file: Path) -> dict[str, Any]:
    """Execute a user's file and check the names that it must define."""
    spare_missing_kernels()
    sys.path.insert(0, str(file.resolve().parent))
    try:
        names = runpy.run_path(str(file), run_name="armdiff_model")
    except (Exception, SystemExit) as error:
        raise BadInput(
            f"{file}{_line_in(file, error)}",
            f"raises {type(error).__name__}: {_first_line(error)}",
            "make 'python FILE' run by itself first",
        ) from error
    finally:
        sys.path.pop(0)
    _check_names(file, names)
    return names


def _check_names(file: Path, names: dict[str, Any]) -> None:
    """Check what a file must define, and put the model into eval mode."""
    model, calibration = names.get("model"), names.get("calibration")
    if not isinstance(model, torch.nn.Module):
        raise BadInput(str(file), _absent(names, "model"), "define model as an nn.Module instance")
    if not isinstance(calibration, (list, tuple)) or not calibration:
        raise BadInput(
            str(file), _absent(names, "calibration"), "define calibration as a non-empty list of input tuples"
        )
    model.eval()
    _check_samples(file, "calibration", calibration, calibration[0])
    if names.get("inputs") is not None:
        _check_samples(file, "inputs", names["inputs"], calibration[0])
    if names.get("configure") is not None and not callable(names["configure"]):
        raise BadInput(str(file), "configure is not a function", "define configure(quantizer)")


def checked_configure(file: Path, configure: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A file's ``configure`` whose mistakes are the file's, and no finding.

    :raises BadInput: when it is called, and raises.
    """

    def configured(quantizer: Any) -> None:
        try:
            configure(quantizer)
        except Exception as error:
            raise _configure_raises(file, error) from error

    return configured


def _configure_raises(file: Path, error: Exception) -> BadInput:
    return BadInput(
        f"{file}{_line_in(file, error)}",
        f"configure raises {type(error).__name__}: {_first_line(error)}",
        "make it accept the quantizer of the target",
    )


def _absent(names: dict[str, Any], name: str) -> str:
    return f"defines no {name!r}" if name not in names else f"{name} is a {type(names[name]).__name__}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "(no message)"


def _line_in(file: Path, error: BaseException) -> str:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno
    return f", line {line}" if line else ""


def _check_samples(file: Path, name: str, samples: Any, first: Any) -> None:
    """Samples are tuples of inputs: tensors, nested as the model takes them, among what is the same in every sample."""
    for index, sample in enumerate(samples):
        path = f"{name}[{index}]"
        if not isinstance(sample, (tuple, list)):
            raise BadInput(str(file), f"{path} is not a tuple of inputs", "write (x,) even for one input")
        if len(sample) != len(first):
            raise BadInput(
                str(file),
                f"{path} has {len(sample)} inputs, calibration[0] has {len(first)}",
                "give every sample the same inputs",
            )
        leaves, structure = _flattened(sample)
        wanted, like = _flattened(first)
        if structure != like:
            raise BadInput(
                str(file), f"{path} is not nested as calibration[0] is", "give every sample the same lists and keys"
            )
        for (position, item), (_, other) in zip(leaves, wanted, strict=True):
            _check_leaf(file, path + position, item, f"calibration[0]{position}", other)


def _flattened(sample: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The leaves of a sample with their paths (``[0]['x']``), and how they are nested."""
    leaves, structure = torch.utils._pytree.tree_flatten_with_path(tuple(sample))
    return [(torch.utils._pytree.keystr(path), leaf) for path, leaf in leaves], structure


def _check_leaf(file: Path, path: str, item: Any, first: str, like: Any) -> None:
    if not (isinstance(item, torch.Tensor) and isinstance(like, torch.Tensor)):
        if type(item) is not type(like) or item != like:
            raise BadInput(
                str(file),
                f"{path} is {item!r}, {first} is {like!r}",
                "give what is no tensor the same value in every sample: the exported graph holds it as a constant",
            )
        return
    if item.shape != like.shape or item.dtype != like.dtype:
        raise BadInput(
            str(file),
            f"{path} is {item.dtype} {list(item.shape)}, {first} is {like.dtype} {list(like.shape)}",
            "give every sample the shape of the first: a case has one shape, also where the model takes several",
        )
    if item.is_floating_point() and not bool(torch.isfinite(item.to(torch.float64)).all()):
        raise BadInput(str(file), f"{path} holds NaN or infinity", "use finite samples")


def _described(leaf: Any) -> str:
    return str(list(leaf.shape)) if isinstance(leaf, torch.Tensor) else repr(leaf)


def _export(file: Path, names: dict[str, Any]) -> Any:
    sample = tuple(names["calibration"][0])
    try:
        with torch.no_grad(), state_kept(names["model"]):
            names["model"](*sample)
    except Exception as error:
        shapes = ", ".join(_described(leaf) for _, leaf in _flattened(sample)[0])
        raise BadInput(
            str(file),
            f"model fails on calibration[0] (inputs {shapes}): {type(error).__name__}: {_first_line(error)}",
            "give calibration inputs that the model accepts",
        ) from error
    try:
        with state_kept(names["model"]):
            return torch.export.export(names["model"], sample)
    except Exception as error:
        raise BadInput(
            str(file),
            f"torch.export cannot capture the model: {type(error).__name__}: {_first_line(error)}",
            "make torch.export.export(model, calibration[0]) work first",
        ) from error


class _Recorder:
    """Stands in for a quantizer and remembers what ``configure`` leaves float or gives widths of its own.

    :ivar said: whether a module's path or its type is meant, which, and ``float`` or widths; what is said last counts.
    """

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def set_module_name(self, name: str, configuration: Any) -> _Recorder:
        self.said.append(("path", name, _widths(configuration)))
        return self

    def set_module_type(self, kind: Any, configuration: Any) -> _Recorder:
        self.said.append(("type", f"{kind.__module__}.{kind.__qualname__}", _widths(configuration)))
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self


def _widths(configuration: Any) -> str:
    from harness.compat.stack import widths_of

    return "float" if configuration is None else widths_of(configuration)


def _set_apart(file: Path, configure: Callable[[Any], Any] | None, exported: Any) -> Iterator[tuple[str, str]]:
    """The nodes of which ``configure`` says something, each with ``float`` or the widths."""
    if configure is None:
        return
    recorder = _Recorder()
    try:
        configure(recorder)
    except Exception as error:
        raise _configure_raises(file, error) from error
    for node in exported.graph.nodes:
        if node.op != "call_function":
            continue
        stack = (node.meta.get("nn_module_stack") or {}).values()
        paths = {path.removeprefix("L['self'].") for path, _ in stack}
        kinds = {kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}" for _, kind in stack}
        said = [
            widths
            for what, key, widths in recorder.said
            if (what == "type" and key in kinds) or (what == "path" and any(_is_below(path, key) for path in paths))
        ]
        if said:
            yield node.name, said[-1]


def _is_below(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


def _with_nodes(recipe: Recipe, apart: Mapping[str, str]) -> Recipe:
    """A recipe that also says what ``configure`` says of nodes; of a node that it names itself it is right."""
    free = {name: widths for name, widths in apart.items() if name not in recipe.set_apart}
    mixed = {widths: list(nodes) for widths, nodes in recipe.mixed}
    for name, widths in free.items():
        if widths not in ("float", recipe.widths):
            mixed.setdefault(widths, []).append(name)
    return msgspec.structs.replace(
        recipe,
        float_nodes=(*recipe.float_nodes, *(name for name, widths in free.items() if widths == "float")),
        mixed=tuple((widths, tuple(mixed[widths])) for widths in QUANTIZED_WIDTHS if widths in mixed),
    )
