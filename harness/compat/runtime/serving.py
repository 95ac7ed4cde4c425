"""The other end of ``harness.compat.runtime``: loads ExecuTorch programs and runs them, one question after the other.

Run by a fork of a worker, which has imported torch, or as a script with the folder of another release of executorch as
its argument. It imports nothing of armdiff's. A message is a line of JSON and then its blobs, whose
sizes the line has as ``blobs``. Tensors are a dtype, sizes, a dim order and a blob with their bytes in memory order.
Seen with executorch 1.1.0 to 1.5.1; what differs is ``_binding``.
"""

import json
import os
import sys
from typing import Any

import torch

Answer = tuple[dict[str, Any], list[bytes]]


def _binding(folder: str) -> Any:
    """The runtime's binding; without what the package around it imports (2 s) where it lies alone (from 1.5.0 on)."""
    import executorch

    if folder:  # executorch is a namespace: whatever lies on the path belongs to it
        executorch.__path__ = [os.path.join(folder, "executorch")]
    import executorch.kernels.quantized

    try:
        from executorch.extension.pybindings import _C

        return _C
    except ImportError:
        from executorch.extension.pybindings import portable_lib

        return portable_lib


def main(folder: str = "") -> None:
    """Answer what comes on descriptor 0 until it ends, on what is descriptor 1 now."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what native code prints is no answer
    torch.set_num_threads(1)
    runtime = _binding(folder)
    methods: dict[str, Any] = {}
    _send(answers, {"backends": list(runtime._get_registered_backend_names())}, [])
    while line := questions.readline():
        question = json.loads(line)
        blobs = [bytearray(questions.read(size)) for size in question["blobs"]]
        try:
            answer, results = _answered(runtime, methods, question, blobs)
        except Exception as error:  # noqa: BLE001 - whatever the runtime raises is its answer
            answer, results = {"error": f"{type(error).__name__}: {error}"}, []
        _send(answers, answer, results)


def _answered(runtime: Any, methods: dict[str, Any], question: dict[str, Any], blobs: list[bytearray]) -> Answer:
    name = question.get("name", "")
    if question["do"] == "forget":
        methods.clear()
        return {}, []
    if question["do"] == "describe":
        data = bytes(blobs[0])
        meta = runtime._load_program_from_buffer(data).method_meta("forward")
        sides = (
            ("taken", meta.num_inputs(), meta.input_tensor_meta),
            ("given", meta.num_outputs(), meta.output_tensor_meta),
        )
        return {side: [_info(read, index) for index in range(count)] for side, count, read in sides}, []
    if question["do"] == "load":
        data = bytes(blobs[0])
        program = runtime._load_program_from_buffer(data)
        methods[name] = (data, program, program.load_method("forward"))
        return {}, []
    return _described(methods[name][2](_arguments(question["values"], iter(blobs))))


def _info(read: Any, index: int) -> dict[str, Any] | None:
    try:
        info = read(index)
    except RuntimeError:  # the value is no tensor
        return None
    return {"dtype": int(info.dtype()), "sizes": list(info.sizes()), "bytes": info.nbytes()}


def _arguments(values: list[dict[str, Any]], blobs: Any) -> list[Any]:
    return [value["value"] if "value" in value else _tensor(value, next(blobs)) for value in values]


def _tensor(value: dict[str, Any], data: bytearray) -> torch.Tensor:
    dtype, sizes, order = getattr(torch, value["dtype"]), value["sizes"], value["order"]
    stored = [sizes[axis] for axis in order]
    flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
    tensor = flat.reshape(stored)
    return tensor.permute([order.index(axis) for axis in range(len(order))])


def _described(results: list[Any]) -> Answer:
    described, blobs = [], []
    for result in results:
        if isinstance(result, torch.Tensor):
            order = sorted(
                range(result.dim()), key=lambda axis: -result.stride(axis)
            )  # `dim_order()` imports for 0.5 s
            stored = result.permute(order).contiguous()
            described.append({"dtype": str(result.dtype)[6:], "sizes": list(result.shape), "order": order})
            blobs.append(stored.reshape(-1).view(torch.uint8).numpy().tobytes())
        else:
            described.append({"value": result})
    return {"values": described}, blobs


def _send(stream: Any, message: dict[str, Any], blobs: list[bytes]) -> None:
    stream.write(json.dumps({**message, "blobs": [len(blob) for blob in blobs]}).encode() + b"\n")
    for blob in blobs:
        stream.write(blob)
    stream.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
