"""Capture a user's own model as a case: an ATen graph by torch.export, tensors in safetensors.

The file is Python and defines ``model`` (an ``nn.Module``) and ``calibration`` (a list of input
tuples), optionally ``inputs`` (tuples to evaluate) and ``configure`` (a function that receives
the quantizer). Everything that is wrong with it is one line: the file, the name, the remedy.

What ``configure`` leaves float (``set_module_name`` or ``set_module_type`` with ``None``) is
recorded as the recipe's ``float=`` nodes, so that the stored case replays without the file; a
run of ``check`` itself uses the real function on the real module.

Where in the user's files each node was called is written beside the case (``harness.case.call_sites``).

Executes the user's file and imports torch; runs in worker processes only.
"""

from __future__ import annotations

import copy
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.numpy import save_file
from torch.export.graph_signature import InputKind, OutputKind

from harness.case.arrays import Array
from harness.case.aten import referenced
from harness.case.call_sites import CallSite, write_call_sites
from harness.case.case import DTYPES, Case, Constant, Distribution, Graph, Input, Node, TensorType, encode_case
from harness.case.checking import check_case
from harness.case.errors import BadInput
from harness.case.recipe import parse_recipe
from harness.compat.states import called_at, operator_name
from harness.workers.protocol import Captured, CaptureTask


def capture_file(task: CaptureTask) -> Captured:
    """Capture ``task.file`` into ``task.folder``/case.json and tensors.safetensors.

    :raises BadInput: what is wrong with the file.
    """
    return _captured(load_file(Path(task.file)), Path(task.file), Path(task.folder), task.target, task.recipe)


def capture_model(names: dict[str, Any], where: str, folder: Path, target: str, recipe: str) -> Captured:
    """Capture a model at hand: ``names`` holds what a user's file would define. The model is left as it was.

    :param where: what messages call its origin.
    :raises BadInput: what is wrong with it.
    """
    file = Path(where)
    own = {**names, "model": copy.deepcopy(names["model"])}
    _check_names(file, own)
    return _captured(own, file, folder, target, recipe)


def _captured(names: dict[str, Any], file: Path, folder: Path, target: str, recipe_words: str) -> Captured:
    exported = _export(file, names)
    graph, tensors = _graph_of(file, exported)
    for index, sample in enumerate(names["calibration"]):
        for item, tensor in zip(graph.inputs, sample, strict=True):
            tensors[f"calibration.{item.name}.{index}"] = _array(tensor)
    for index, sample in enumerate(names.get("inputs") or ()):
        for item, tensor in zip(graph.inputs, sample, strict=True):
            tensors[f"given.{index}.{item.name}"] = _array(tensor)
    floats = _float_nodes(file, names.get("configure"), exported)
    recipe = parse_recipe(recipe_words)
    if floats and recipe.widths != "float":
        recipe = msgspec.structs.replace(recipe, float_nodes=tuple(dict.fromkeys((*recipe.float_nodes, *floats))))
    case = Case(
        graph=graph,
        recipe=str(recipe),
        target=target,
        samples=len(names["calibration"]),
        calibration={
            item.name: Distribution(kind="recorded", parameters={"prefix": f"calibration.{item.name}"})
            for item in graph.inputs
        },
        tensors="tensors.safetensors",
        note=f"captured from {file.name}; holds the weights of that model",
    )
    check_case(case)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "tensors.safetensors")
    (folder / "case.json").write_bytes(encode_case(case))
    write_call_sites(folder, _call_sites(exported, file, type(names["model"]).__name__))
    return Captured(case=str(folder / "case.json"), float_nodes=floats)


def _call_sites(exported: Any, file: Path, model: str) -> dict[str, CallSite]:
    """Where each call is made, by its node's name.

    :param file: stands for a line that none of the user's files has.
    :param model: stands for the path of the model itself.
    """
    found, here = {}, Path.cwd()
    for node in filter(_is_call, exported.graph.nodes):
        path, line = called_at(node) or (file.absolute(), 0)
        modules = [str(path) for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        inside = modules[-1].removeprefix("L['self']").removeprefix(".") if modules else ""
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        found[node.name] = CallSite(module=inside or model, file=str(shown), path=str(path), line=line)
    return found


def _is_call(node: torch.fx.Node) -> bool:
    """Does it become a node of the case?"""
    return node.op == "call_function" and operator_name(node.target) != "getitem"


def load_file(file: Path) -> dict[str, Any]:
    """Execute a user's file and check the names that it must define."""
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
    for index, sample in enumerate(samples):
        path = f"{name}[{index}]"
        if not isinstance(sample, (tuple, list)) or not all(isinstance(item, torch.Tensor) for item in sample):
            raise BadInput(str(file), f"{path} is not a tuple of tensors", "write (x,) even for one input")
        if len(sample) != len(first):
            raise BadInput(
                str(file),
                f"{path} has {len(sample)} inputs, calibration[0] has {len(first)}",
                "give every sample the same inputs",
            )
        for position, (item, like) in enumerate(zip(sample, first, strict=True)):
            if item.shape != like.shape or item.dtype != like.dtype:
                raise BadInput(
                    str(file),
                    f"{path}[{position}] is {item.dtype} {list(item.shape)}, "
                    f"calibration[0][{position}] is {like.dtype} {list(like.shape)}",
                    "give every sample the shape of the first",
                )
            if item.is_floating_point() and not bool(torch.isfinite(item).all()):
                raise BadInput(str(file), f"{path}[{position}] holds NaN or infinity", "use finite samples")


def _export(file: Path, names: dict[str, Any]) -> Any:
    sample = tuple(names["calibration"][0])
    try:
        with torch.no_grad():
            names["model"](*sample)
    except Exception as error:
        shapes = ", ".join(str(list(item.shape)) for item in sample)
        raise BadInput(
            str(file),
            f"model fails on calibration[0] (inputs {shapes}): {type(error).__name__}: {_first_line(error)}",
            "give calibration inputs that the model accepts",
        ) from error
    try:
        return torch.export.export(names["model"], sample)
    except Exception as error:
        raise BadInput(
            str(file),
            f"torch.export cannot capture the model: {type(error).__name__}: {_first_line(error)}",
            "make torch.export.export(model, calibration[0]) work first",
        ) from error


def _graph_of(file: Path, exported: Any) -> tuple[Graph, dict[str, Array]]:
    inputs: list[Input] = []
    constants: list[Constant] = []
    tensors: dict[str, Array] = {}
    lifted = {**exported.constants, **exported.state_dict}
    for spec in exported.graph_signature.input_specs:
        name = spec.arg.name
        if spec.kind == InputKind.USER_INPUT:
            value = _placeholder(exported, name).meta.get("val")
            kind = _type_of(file, value, name)
            inputs.append(Input(name=name, shape=kind.shape, dtype=kind.dtype))
        elif spec.target in lifted:
            value = lifted[spec.target].detach()
            kind = _type_of(file, value, name)
            tensors[name] = _array(value)
            place = "parameter" if spec.kind == InputKind.PARAMETER else "tensor"
            constants.append(
                Constant(name=name, shape=kind.shape, dtype=kind.dtype, kind=place, parameters={"key": name})
            )
    for spec in exported.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise BadInput(
                str(file),
                f"the model changes its state ({spec.kind.name.lower()} of {spec.target})",
                "check a model whose forward only returns values",
            )
    nodes, outputs = tuple(_nodes(file, exported)), _outputs(file, exported)
    return Graph(inputs=tuple(inputs), constants=tuple(constants), nodes=nodes, outputs=outputs), tensors


def _placeholder(exported: Any, name: str) -> torch.fx.Node:
    found: torch.fx.Node = next(node for node in exported.graph.nodes if node.op == "placeholder" and node.name == name)
    return found


def _value_names(exported: Any) -> dict[str, str]:
    """What a case calls the values of an exported graph: ``split.1`` for a ``getitem`` of several results."""
    names = {}
    for node in exported.graph.nodes:
        names[node.name] = node.name
        if node.op == "call_function" and operator_name(node.target) == "getitem":
            source, index = node.args
            names[node.name] = source.name if len(source.meta["val"]) == 1 else f"{source.name}.{index}"
    return names


def _nodes(file: Path, exported: Any) -> Iterator[Node]:
    names = _value_names(exported)
    for node in exported.graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and "higher_order" in str(type(node.target))):
            raise BadInput(
                str(file),
                f"the model contains control flow ({node.name})",
                "check a model without cond, while_loop or map",
            )
        if not _is_call(node):
            continue
        args = [_argument(file, item, names) for item in node.args]
        kwargs = {key: _argument(file, item, names) for key, item in node.kwargs.items()}
        value = node.meta.get("val")
        values = value if isinstance(value, (tuple, list)) else (value,)
        yield Node(
            name=node.name,
            operator=operator_name(node.target),
            inputs=tuple(referenced([args, list(kwargs.values())])),
            attributes={"args": args, "kwargs": kwargs},
            types=tuple(_type_of(file, item, node.name) for item in values),
        )


def _argument(file: Path, item: Any, names: Mapping[str, str]) -> Any:
    if isinstance(item, torch.fx.Node):
        return {"value": names[item.name]}
    if isinstance(item, (list, tuple)):
        return [_argument(file, child, names) for child in item]
    if isinstance(item, torch.dtype):
        return {"dtype": str(item).removeprefix("torch.")}
    if isinstance(item, torch.device):
        return {"device": item.type}
    if isinstance(item, torch.layout):
        return {"layout": str(item).removeprefix("torch.")}
    if isinstance(item, torch.memory_format):
        return {"memory_format": str(item).removeprefix("torch.")}
    if isinstance(item, float) and item in (float("inf"), float("-inf")):
        return {"float": "inf" if item > 0 else "-inf"}
    if isinstance(item, (bool, int, float, type(None))) or (isinstance(item, str) and re.fullmatch(r"\w+", item)):
        return item
    raise BadInput(
        str(file),
        f"the captured graph has an argument {item!r} of type {type(item).__name__}",
        "check a model whose operators take tensors and plain numbers",
    )


def _outputs(file: Path, exported: Any) -> tuple[str, ...]:
    results = exported.graph.output_node().args[0]
    called, names = _value_names(exported), []
    for result in results if isinstance(results, (tuple, list)) else (results,):
        if not isinstance(result, torch.fx.Node):
            raise BadInput(str(file), f"the model returns {result!r}, which is no tensor", "return tensors only")
        names.append(called[result.name])
    return tuple(names)


def _type_of(file: Path, value: Any, name: str) -> TensorType:
    if not isinstance(value, torch.Tensor) or not all(isinstance(size, int) for size in value.shape):
        raise BadInput(
            str(file),
            f"value {name!r} of the captured graph is no tensor of fixed shape",
            "check a model with tensors of static shapes",
        )
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise BadInput(str(file), f"value {name!r} of the captured graph is {dtype}", f"use one of {', '.join(DTYPES)}")
    return TensorType(tuple(value.shape), dtype)


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().contiguous().numpy().copy()
    return array


class _Recorder:
    """Stands in for a quantizer and remembers what ``configure`` leaves float."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.types: set[str] = set()

    def set_module_name(self, name: str, configuration: Any) -> _Recorder:
        if configuration is None:
            self.names.add(name)
        return self

    def set_module_type(self, kind: Any, configuration: Any) -> _Recorder:
        if configuration is None:
            self.types.add(f"{kind.__module__}.{kind.__qualname__}")
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self


def _float_nodes(file: Path, configure: Callable[[Any], Any] | None, exported: Any) -> tuple[str, ...]:
    if configure is None:
        return ()
    recorder = _Recorder()
    try:
        configure(recorder)
    except Exception as error:
        raise _configure_raises(file, error) from error
    found = []
    for node in exported.graph.nodes:
        stack = (node.meta.get("nn_module_stack") or {}).values()
        paths = {path.removeprefix("L['self'].") for path, _ in stack}
        kinds = {kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}" for _, kind in stack}
        named = any(path == name or path.startswith(f"{name}.") for path in paths for name in recorder.names)
        if _is_call(node) and (named or kinds & recorder.types):
            found.append(node.name)
    return tuple(found)
