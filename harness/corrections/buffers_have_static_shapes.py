"""``buffers-have-static-shapes``: a retraced graph has no symbols for the sizes of its buffers."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="buffers-have-static-shapes",
    entries=("softmax-matmul-buffer-prepare", "matmul-of-constant-symbolic-size"),
    cause=(
        "make_val makes fake tensors of parameters with static shapes and of buffers without, so a retraced graph has "
        "symbols for the sizes of a buffer, and what takes such a size takes a node without a device."
    ),
    change="make_val makes every real tensor a fake one with static shapes.",
    changes=(
        Change(
            "executorch.exir.pass_base",
            "_ExportPassBase.ExportTracer.set_metadata",
            {"1.4.1": "ca07dc1f7371", "1.5.1": "ca07dc1f7371"},
            (
                Edit(
                    "                        if isinstance(x, torch.nn.Parameter):\n"
                    "                            fake_tensor = self.fake_tensor_mode.from_tensor(\n"
                    "                                x, static_shapes=True\n"
                    "                            )\n"
                    "                        else:\n"
                    "                            fake_tensor = self.fake_tensor_mode.from_tensor(x)\n",
                    "                        fake_tensor = self.fake_tensor_mode.from_tensor(\n"
                    "                            x, static_shapes=True\n"
                    "                        )\n",
                ),
            ),
        ),
    ),
    patterns=(("softmax",), ("matmul",)),
)
