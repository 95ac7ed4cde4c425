"""From Keras to TFLite in full int8, and TFLite's own answers by its reference kernels.

TFLite's FULLY_CONNECTED rounds its accumulators once, where CONV_2D rounds them twice (the high half of the doubled
product, then the shift), and Vela makes both alike: it asks the NPU for double rounding. ``with_convolutions`` is the
same network with a 1x1 CONV_2D for every FULLY_CONNECTED, same weights, same scales: what TFLite returns for it is what
its convolutions would have made of the network, so a difference that is gone there is TFLite's between its own kernels.
"""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

Array = Any
_SAMPLES = 16
_VERSIONS = {schema.BuiltinOperator.RESHAPE: 1, schema.BuiltinOperator.CONV_2D: 3}


def converted(model: Any, name: str) -> bytes:
    """A flatbuffer with int8 weights, activations, inputs and outputs."""
    rng = np.random.default_rng(zlib.crc32(name.encode()) + 1)

    def samples() -> Iterator[list[Array]]:
        for _ in range(_SAMPLES):
            yield [rng.normal(0, 1, (1, *model.input_shape[1:])).astype(np.float32)]

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    with contextlib.redirect_stdout(sys.stderr):  # it prints the signature
        return bytes(converter.convert())


def _interpreter(flatbuffer: bytes) -> Any:
    kernels = tf.lite.experimental.OpResolverType.BUILTIN_REF
    interpreter = tf.lite.Interpreter(model_content=flatbuffer, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    return interpreter


def inputs_of(flatbuffer: bytes, count: int) -> list[Array]:
    """Inputs: as they were calibrated, codes of the whole range, and in the last one its two ends."""
    (detail,) = _interpreter(flatbuffer).get_input_details()
    scale, zero_point = detail["quantization"]
    rng, shape = np.random.default_rng(7), detail["shape"]
    usual = [np.rint(rng.normal(0, 1, shape) / scale) + zero_point for _ in range(count // 2)]
    wide = [rng.integers(-128, 128, shape) for _ in range(count - len(usual) - 1)]
    return [np.clip(item, -128, 127).astype(np.int8) for item in (*usual, *wide, rng.choice([-128, 127], shape))]


def answers(flatbuffer: bytes, inputs: Sequence[Array]) -> list[Array]:
    """What TFLite's reference kernels return for each input."""
    interpreter = _interpreter(flatbuffer)
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    found = []
    for array in inputs:
        interpreter.set_tensor(given["index"], array)
        interpreter.invoke()
        found.append(interpreter.get_tensor(result["index"]))
    return found


def operators(flatbuffer: bytes) -> list[str]:
    """Names of the operators, each once."""
    return sorted({item["op_name"] for item in _interpreter(flatbuffer)._get_ops_details()})


def with_convolutions(flatbuffer: bytes) -> bytes:
    """The network with a 1x1 CONV_2D between two RESHAPEs for every FULLY_CONNECTED."""
    model = flatbuffer_utils.convert_bytearray_to_object(bytearray(flatbuffer))
    graph = model.subgraphs[0]
    made: list[Any] = []
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        dense = max(code.builtinCode, code.deprecatedBuiltinCode) == schema.BuiltinOperator.FULLY_CONNECTED
        made += _convolution(model, operator) if dense else [operator]
    graph.operators = made
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _convolution(model: Any, dense: Any) -> list[Any]:
    tensors = model.subgraphs[0].tensors
    source, weights, *bias = (int(index) for index in dense.inputs)
    (target,) = dense.outputs
    outputs, depth = tensors[weights].shape
    rows = math.prod(tensors[source].shape) // depth
    before, after = _like(tensors, source, (1, rows, 1, depth)), _like(tensors, target, (1, rows, 1, outputs))
    kernel = _like(tensors, weights, (outputs, 1, 1, depth), tensors[weights].buffer)
    options = schema.Conv2DOptionsT()
    options.padding = schema.Padding.VALID
    options.strideW = options.strideH = options.dilationWFactor = options.dilationHFactor = 1
    options.fusedActivationFunction = dense.builtinOptions.fusedActivationFunction
    operands = [before, kernel, *([index for index in bias if index >= 0] or [_no_bias(model, source, weights)])]
    convolution = _operator(model, schema.BuiltinOperator.CONV_2D, operands, after)
    convolution.builtinOptionsType, convolution.builtinOptions = schema.BuiltinOptions.Conv2DOptions, options
    return [_reshape(model, source, before), convolution, _reshape(model, after, target)]


def _no_bias(model: Any, source: int, weights: int) -> int:
    """A bias of zeros, without which CONV_2D does not run; its number."""
    tensors = model.subgraphs[0].tensors
    scales = np.asarray(tensors[weights].quantization.scale) * tensors[source].quantization.scale[0]
    index = _constant(model, np.zeros(tensors[weights].shape[0], np.int32))
    quantization = schema.QuantizationParametersT()
    quantization.scale, quantization.zeroPoint = scales.astype(np.float32), np.zeros(len(scales), np.int64)
    tensors[index].quantization = quantization
    return index


def _constant(model: Any, values: Array) -> int:
    """A new tensor of 32-bit integers; its number."""
    buffer, tensor = schema.BufferT(), schema.TensorT()
    buffer.data = np.frombuffer(values.tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor.shape, tensor.type, tensor.name = list(values.shape), schema.TensorType.INT32, b"constant"
    tensor.buffer = len(model.buffers) - 1
    model.subgraphs[0].tensors.append(tensor)
    return len(model.subgraphs[0].tensors) - 1


def _like(tensors: list[Any], index: int, shape: Sequence[int], buffer: int = 0) -> int:
    """A new tensor of another's type and quantization; its number."""
    tensor = copy.deepcopy(tensors[index])
    tensor.shape, tensor.shapeSignature, tensor.buffer, tensor.name = list(shape), None, buffer, b"twin"
    tensors.append(tensor)
    return len(tensors) - 1


def _operator(model: Any, builtin: int, inputs: Sequence[int], output: int) -> Any:
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = builtin
    code.version = _VERSIONS[builtin]
    model.operatorCodes.append(code)
    operator = schema.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = len(model.operatorCodes) - 1, list(inputs), [output]
    return operator


def _reshape(model: Any, source: int, target: int) -> Any:
    shape = np.asarray(model.subgraphs[0].tensors[target].shape, np.int32)
    operator = _operator(model, schema.BuiltinOperator.RESHAPE, [source, _constant(model, shape)], target)
    options = schema.ReshapeOptionsT()
    options.newShape = shape.tolist()
    operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.ReshapeOptions, options
    return operator
