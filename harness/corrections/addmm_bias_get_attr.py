"""``addmm-bias-get-attr``: an operator with a parameter and a scalar as operands can be quantized."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="addmm-bias-get-attr",
    entries=("addmm-constant-bias-prepare",),
    cause=(
        "DecomposeAddmmPass multiplies the bias by the scalar beta, and ReplaceScalarWithTensorArgPass takes the first "
        "operand for a ProxyValue. A parameter or buffer is a get_attr node at annotation, and so a plain tensor."
    ),
    change="ReplaceScalarWithTensorArgPass takes plain tensors as well.",
    changes=(
        Change(
            "executorch.backends.transforms.replace_scalar_with_tensor",
            "ReplaceScalarWithTensorArgPass.get_replacement",
            {"1.4.1": "0b4b7b846eba", "1.5.1": "0b4b7b846eba"},
            (
                Edit(
                    "        if isinstance(op, OpOverload):\n",
                    "        from executorch.exir.pass_base import ProxyValue\n\n"
                    "        # The operand is a plain tensor if it comes from a get_attr node.\n"
                    "        tensor = args[0].to_tensor() if isinstance(args[0], ProxyValue) else args[0]\n"
                    "        if isinstance(op, OpOverload):\n",
                ),
                Edit(
                    '                        "dtype": args[0].to_tensor().dtype,\n'
                    '                        "device": args[0].to_tensor().device,\n',
                    """\
                        "dtype": tensor.dtype,
                        "device": tensor.device,
""",
                ),
            ),
        ),
    ),
    patterns=(("addmm|baddbmm|add|sub|mul|div",),),
)
