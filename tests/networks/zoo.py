"""The networks, each with how it is made and what it is calibrated on.

Weights are drawn, not learned. So the statistics of batch normalizations are taken from a batch of the inputs, or
activations would vanish or explode on the way; and nothing here says how accurate a network is. Widths are those of
the real networks where that costs a minute, and less where it does not: ConvNeXt, ViT, BERT and the decoder have
fewer and narrower layers, of the same kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Sample = tuple[Any, ...]
SAMPLES, CLASSES, WORDS = 2, 10, 100
CACHE = 8


def _images(size: int) -> Callable[[], list[Sample]]:
    return lambda: [(torch.randn(1, 3, size, size),) for _ in range(SAMPLES)]


def _classifier(name: str, **words: Any) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        import torchvision.models

        return _normalized(getattr(torchvision.models, name)(num_classes=CLASSES, **words))

    return made


def _normalized(model: nn.Module) -> nn.Module:
    """The model with the statistics of a batch in its batch normalizations."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        model.train()(torch.randn(4, 3, 64, 64))
    return model.eval()


def _convnext() -> nn.Module:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    blocks = [CNBlockConfig(32, 64, 1), CNBlockConfig(64, 128, 2), CNBlockConfig(128, None, 1)]
    return ConvNeXt(blocks, num_classes=CLASSES)


def _vit() -> nn.Module:
    from torchvision.models import VisionTransformer

    model = VisionTransformer(32, 8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=CLASSES)
    nn.init.normal_(model.heads.head.weight, std=0.1)  # torchvision's is zero until it is trained
    return model


class Segmentation(nn.Module):
    """A model of torchvision's for segmentation, of which the map is returned alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)["out"]


def _deeplab() -> nn.Module:
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    return _normalized(Segmentation(deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=CLASSES)))


class Encoder(nn.Module):
    """A BERT of which the last hidden states are returned, as a tensor."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        words = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
        config = BertConfig(vocab_size=WORDS, hidden_size=64, max_position_embeddings=32, **words)
        config._attn_implementation = "eager"
        self.model = BertModel(config, add_pooling_layer=False)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=tokens, attention_mask=mask)[0]


def _sentences() -> list[Sample]:
    masks = [torch.ones(1, CACHE, dtype=torch.int64) for _ in range(SAMPLES)]
    for place, mask in enumerate(masks):
        mask[:, CACHE - place :] = 0
    return [(torch.randint(0, WORDS, (1, CACHE)), mask) for mask in masks]


class Decoder(nn.Module):
    """A Llama that takes one token after the other and keeps what it saw in buffers."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
        from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

        words = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128}
        config = LlamaConfig(vocab_size=WORDS, hidden_size=64, max_position_embeddings=32, use_cache=True, **words)
        config._attn_implementation = "eager"
        model = LlamaForCausalLM(config).eval()
        cache = {"batch_size": 1, "max_cache_len": CACHE}
        model.generation_config = GenerationConfig(
            use_cache=True, cache_implementation="static", max_length=CACHE, cache_config=cache
        )
        self.model = TorchExportableModuleWithStaticCache(model)

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=token, cache_position=position)


def _steps() -> list[Sample]:
    return [(torch.randint(0, WORDS, (1, 1)), torch.tensor([place])) for place in range(SAMPLES)]


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], list[Sample]]]] = {
    "mobilenet_v2": (_classifier("mobilenet_v2"), _images(64)),
    "mobilenet_v3_small": (_classifier("mobilenet_v3_small"), _images(64)),
    "resnet18": (_classifier("resnet18"), _images(64)),
    "squeezenet1_1": (_classifier("squeezenet1_1"), _images(64)),
    "shufflenet_v2_x0_5": (_classifier("shufflenet_v2_x0_5"), _images(64)),
    "efficientnet_b0": (_classifier("efficientnet_b0"), _images(64)),
    "regnet_y_400mf": (_classifier("regnet_y_400mf"), _images(64)),
    "convnext": (_convnext, _images(64)),
    "vit": (_vit, _images(32)),
    "deeplabv3_mobilenet_v3_large": (_deeplab, _images(64)),
    "bert": (Encoder, _sentences),
    "llama": (Decoder, _steps),
}


def built(name: str) -> tuple[nn.Module, list[Sample]]:
    """A network and its calibration samples, the same each time."""
    model, samples = NETWORKS[name]
    torch.manual_seed(0)
    return model().eval(), samples()
