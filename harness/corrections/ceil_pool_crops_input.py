"""``ceil-pool-crops-input``: elements that no window of a ceil_mode pool reads are cut off, as without ceil_mode."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.size_adjust_input_pass"

_FIRST = """\
        remainder = pooling_remainder(
            input_shape[dim], pad_size, kernel_length, stride_length
        )
"""

_CEIL_MODE = Edit(
    "    slices = []\n",
    "    slices = []\n"
    "    ceil_mode_index = 5 if pooling_node.target == max_pooling_op else 4\n"
    "    ceil_mode = (\n"
    "        pooling_node.args[ceil_mode_index]\n"
    "        if len(pooling_node.args) > ceil_mode_index\n"
    "        else False\n"
    "    )\n",
)
_CEIL = "        if ceil_mode:\n"
_CROP = (
    _CEIL + "            # A last window that would start beyond the input is dropped; then the\n"
    "            # others may end before the input does.\n"
    "            if isinstance(input_shape[dim], int):\n"
    "                post_pad = adjust_pooling_pad_if_needed(\n"
    "                    input_shape[dim], kernel_length, stride_length, pad_size, True\n"
    "                )\n"
    "                if post_pad < 0:\n"
    "                    slices.append((dim, 0, input_shape[dim] + post_pad))\n"
    "            continue\n"
)
_IMPORT = (
    "            from executorch.backends.arm.operators.operator_validation_utils import (\n"
    "                adjust_pooling_pad_if_needed,\n"
    "            )\n"
    "\n"
)
_ROUNDED_UP = "        output_size = (numerator + stride - 1) // stride + 1\n"

CORRECTION = Correction(
    name="ceil-pool-crops-input",
    entries=("ceil-pool-negative-pad",),
    cause=(
        "With ceil_mode ATen drops a last window that starts beyond the input, and adjust_pooling_pad_if_needed solves "
        "for a negative padding if the others do not reach the end. SizeAdjustInputPass leaves ceil_mode pools alone."
    ),
    change="SizeAdjustInputPass crops the input of a ceil_mode pool by what that padding is below zero.",
    changes=(
        Change(_MODULE, "get_slices_pooling", {"1.5.1": "c3468bf81a40"}, (_CEIL_MODE, Edit(_FIRST, _CROP + _FIRST))),
        Change(
            _MODULE,
            "is_valid_operator",
            dict.fromkeys(("1.4.1", "1.5.1"), "3c56600918b7"),
            (
                Edit(
                    "        ceil_mode = node.args[5] if len(node.args) >= 6 else False\n\n        # Dilation",
                    "\n        # Dilation",
                ),
                Edit(
                    "        # If using ceil mode for rounding, the input does not need adjusting\n"
                    "        return not ceil_mode\n",
                    "        return True\n",
                ),
                Edit("        ceil_mode = node.args[4] if len(node.args) >= 5 else False\n", ""),
                Edit(
                    "        return not ceil_mode and not count_include_pad and divisor_override is None\n",
                    "        return not count_include_pad and divisor_override is None\n",
                ),
            ),
        ),
        # 1.4.1 keeps such a last window as well
        Change(
            _MODULE,
            "get_slices_pooling",
            {"1.4.1": "1ed5b3ed727e"},
            (_CEIL_MODE, Edit(_FIRST, _CROP.replace(_CEIL, _CEIL + _IMPORT) + _FIRST)),
        ),
        Change(
            "executorch.backends.arm.operators.operator_validation_utils",
            "adjust_pooling_pad_if_needed",
            {"1.4.1": "4e30f946b6d9"},
            (
                Edit(
                    _ROUNDED_UP,
                    _ROUNDED_UP + "        if (output_size - 1) * stride >= input_size + pad:\n"
                    "            output_size -= 1\n",
                ),
            ),
        ),
    ),
    patterns=(("max_pool2d|max_pool1d|avg_pool2d|avg_pool1d",),),
)
