"""Small Keras networks with random weights: one function a network, in ``NETWORKS``.

They have the shapes of what runs on Ethos-U: the four of MLPerf Tiny (DS-CNN, ResNet8, MobileNetV1, autoencoder),
MobileNetV2, a U-Net, attention, a network in one dimension, an LSTM, and one each for softmax alone and for the
activations. Weights are drawn from the network's name: large enough for outputs to differ from element to element.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

_USUAL, _LOGITS = 1.6, 0.3
"""Standard deviation of weights, in units of 1/sqrt(fan-in); small before a softmax, which saturates otherwise."""
Tensor = Any
Network = Callable[[], Any]
layers: Any = tf.keras.layers


def _conv(
    x: Tensor, filters: int, size: int | tuple[int, int] = 3, stride: int = 1, act: str | None = "relu"
) -> Tensor:
    x = layers.Conv2D(filters, size, stride, "same", use_bias=False)(x)
    return _normal(x, act)


def _depthwise(x: Tensor, size: int = 3, stride: int = 1, act: str | None = "relu") -> Tensor:
    return _normal(layers.DepthwiseConv2D(size, stride, "same", use_bias=False)(x), act)


def _normal(x: Tensor, act: str | None) -> Tensor:
    x = layers.BatchNormalization()(x)
    return x if act is None else layers.Activation(act)(x)


def _classified(x: Tensor, classes: int) -> Tensor:
    return layers.Softmax()(layers.Dense(classes, name="predictions")(layers.GlobalAveragePooling2D()(x)))


def _model(shape: tuple[int, ...], body: Callable[[Tensor], Tensor]) -> Any:
    x = tf.keras.Input(shape, batch_size=1)
    return tf.keras.Model(x, body(x))


def softmax() -> Any:
    """Softmax alone."""
    return _model((40,), lambda x: layers.Softmax()(x))


def ds_cnn() -> Any:
    """Keyword spotting of MLPerf Tiny."""

    def body(x: Tensor) -> Tensor:
        x = _conv(x, 64, (10, 4), 2)
        for _ in range(4):
            x = _conv(_depthwise(x), 64, 1)
        return _classified(x, 12)

    return _model((49, 10, 1), body)


def resnet8() -> Any:
    """Image classification of MLPerf Tiny: three residual blocks."""

    def body(x: Tensor) -> Tensor:
        x = _conv(x, 16)
        for filters, stride in ((16, 1), (32, 2), (64, 2)):
            y = _conv(_conv(x, filters, 3, stride), filters, act=None)
            if stride > 1:
                x = layers.Conv2D(filters, 1, stride, "same")(x)
            x = layers.ReLU()(layers.Add()([x, y]))
        return _classified(x, 10)

    return _model((32, 32, 3), body)


def mobilenet_v1() -> Any:
    """Visual wake words of MLPerf Tiny: MobileNetV1, a quarter of the width, 96x96."""
    image = tf.keras.Input((96, 96, 3), batch_size=1)
    return tf.keras.applications.MobileNet(input_tensor=image, alpha=0.25, weights=None, classes=2)


def mobilenet_v2() -> Any:
    """MobileNetV2, a third of the width, 96x96."""
    image = tf.keras.Input((96, 96, 3), batch_size=1)
    return tf.keras.applications.MobileNetV2(input_tensor=image, alpha=0.35, weights=None, classes=10)


def autoencoder() -> Any:
    """Anomaly detection of MLPerf Tiny."""

    def body(x: Tensor) -> Tensor:
        for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
            x = _normal(layers.Dense(units)(x), "relu")
        return layers.Dense(640)(x)

    return _model((640,), body)


def unet() -> Any:
    """Two levels down and up, by transposed convolution and by bilinear resizing."""

    def body(x: Tensor) -> Tensor:
        first = _conv(_conv(x, 8), 8)
        second = _conv(_conv(layers.MaxPooling2D(2)(first), 16), 16)
        x = _conv(layers.AveragePooling2D(2)(second), 32)
        x = layers.Conv2DTranspose(16, 2, 2, "same")(x)
        x = _conv(layers.Concatenate()([x, second]), 16)
        x = layers.UpSampling2D(interpolation="bilinear")(x)
        x = _conv(layers.Concatenate()([x, first]), 8)
        return layers.Conv2D(1, 1, activation="sigmoid")(x)

    return _model((32, 32, 3), body)


def attention() -> Any:
    """One block of a transformer: four heads, residuals, layer normalization, a mean at the end."""

    def body(x: Tensor) -> Tensor:
        heads = [layers.Reshape((16, 4, 8))(layers.Dense(32)(x)) for _ in range(3)]
        query, key, value = (layers.Permute((2, 1, 3))(head) for head in heads)
        scores = layers.Softmax()(tf.keras.ops.matmul(query, tf.keras.ops.transpose(key, (0, 1, 3, 2))) * 0.35)
        mixed = layers.Reshape((16, 32))(layers.Permute((2, 1, 3))(tf.keras.ops.matmul(scores, value)))
        x = _layer_normal(layers.Add()([x, layers.Dense(32)(mixed)]))
        x = layers.Add()([x, layers.Dense(32)(layers.Dense(64, activation="relu")(x))])
        return layers.Dense(6)(layers.GlobalAveragePooling1D()(x))

    return _model((16, 32), body)


def _layer_normal(x: Tensor) -> Tensor:
    """Keras' own has a negation, which the converter leaves in floating point."""
    centred = layers.Subtract()([x, tf.keras.ops.mean(x, -1, keepdims=True)])
    variance = tf.keras.ops.mean(tf.keras.ops.square(centred), -1, keepdims=True)
    return layers.Multiply()([centred, tf.keras.ops.rsqrt(variance + 0.01)])


def conv1d() -> Any:
    """A network in one dimension, as for an electrocardiogram."""

    def body(x: Tensor) -> Tensor:
        for filters, stride in ((16, 2), (24, 1), (32, 2)):
            x = layers.Conv1D(filters, 5, stride, "same", activation="relu")(x)
            x = layers.MaxPooling1D(2)(x)
        x = layers.Flatten()(x)
        return layers.Softmax()(layers.Dense(5, name="predictions")(layers.Dense(32, activation="tanh")(x)))

    return _model((128, 2), body)


def activations() -> Any:
    """Leaky and parametric ReLU, hard swish, sigmoid, tanh, minimum, maximum, and a gate of squeeze and excite."""

    def body(x: Tensor) -> Tensor:
        x = layers.LeakyReLU(negative_slope=0.2)(_conv(x, 8, act=None))
        x = layers.PReLU(shared_axes=[1, 2])(_conv(x, 8, act=None))
        x = layers.Activation("hard_swish")(_conv(x, 16, act=None))
        gate = layers.Dense(16, activation="sigmoid")(
            layers.Dense(4, activation="relu")(layers.GlobalAveragePooling2D()(x))
        )
        x = layers.Multiply()([x, layers.Reshape((1, 1, 16))(gate)])
        x = layers.Maximum()([layers.Activation("tanh")(x), layers.Conv2D(16, 1)(x)])
        return layers.Subtract()([x, layers.Minimum()([x, layers.Conv2D(16, 1, activation="relu6")(x)])])

    return _model((16, 16, 3), body)


def lstm() -> Any:
    """A recurrent network, unrolled: the converter dies on one that is not."""

    def body(x: Tensor) -> Tensor:
        return layers.Dense(4)(layers.LSTM(16, unroll=True)(x))

    return _model((6, 8), body)


NETWORKS: Mapping[str, Network] = {
    item.__name__: item
    for item in (
        softmax, ds_cnn, resnet8, mobilenet_v1, mobilenet_v2, autoencoder, unet, attention, conv1d, activations, lstm,
    )
}  # fmt: skip


def built(name: str) -> Any:
    """A network with its weights."""
    model = NETWORKS[name]()
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for layer in model.layers:
        spread = _LOGITS if layer.name in ("predictions", "conv_preds") else _USUAL
        layer.set_weights([_drawn(rng, variable.name, variable.shape, spread) for variable in layer.weights])
    return model


def _drawn(rng: np.random.Generator, name: str, shape: tuple[int, ...], spread: float) -> Any:
    if name in ("gamma", "moving_variance"):
        return rng.uniform(0.5, 1.5, shape)
    if name in ("beta", "moving_mean", "bias", "alpha"):
        return rng.normal(0, 0.3, shape)
    depthwise = "depthwise" in name or shape[-1] == 1
    taps = np.prod(shape[:2]) if depthwise else np.prod(shape[:-1])
    return rng.normal(0, spread / np.sqrt(taps), shape)
