"""``float-asin-of-powers``: a float asin or acos is the rational function that its coefficients were made for."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="float-asin-of-powers",
    entries=("float-asin-of-wrong-powers",),
    cause=(
        "DecomposeAsinAndAcosPass has the coefficients of a rational function of x * x, squares the variable from term "
        "to term (x, x**2, x**4, x**8) where the next power is due, and gives it x itself below 0.5. The last "
        "coefficient of either polynomial is not there at all."
    ),
    change="Each term has the next power, of x * x, and both polynomials are whole.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_asin_and_acos_pass",
            "DecomposeAsinAndAcosPass._build_polynomial",
            {"1.4.1": "95c1eb0ff3ee", "1.5.1": "95c1eb0ff3ee"},
            (
                Edit(
                    "        result = super().call_scalar(coefficients[0], meta)\n",
                    "        power = variable\n        result = super().call_scalar(coefficients[0], meta)\n",
                ),
                Edit("mul_op_scalar, (variable, coeff)", "mul_op_scalar, (power, coeff)"),
                Edit(
                    "            variable = super().call_operator(\n"
                    "                mul_op, (variable, variable), {}, meta, True\n",
                    "            power = super().call_operator(\n"
                    "                mul_op, (power, variable), {}, meta, True\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.decompose_asin_and_acos_pass",
            "DecomposeAsinAndAcosPass.call_operator",
            {"1.4.1": "48d74bd95cb1", "1.5.1": "48d74bd95cb1"},
            (
                Edit(
                    "            7.9153501429e-04,\n",
                    "            7.9153501429e-04,\n            3.4793309169e-05,\n",
                ),
                Edit(
                    "        q_coefficients = [1.0, -2.4033949375e00, 2.0209457874e00, -6.8828397989e-01]\n",
                    "        q_coefficients = [\n"
                    "            1.0,\n"
                    "            -2.4033949375e00,\n"
                    "            2.0209457874e00,\n"
                    "            -6.8828397989e-01,\n"
                    "            7.7038154006e-02,\n"
                    "        ]\n",
                ),
                Edit(
                    "        P = self._build_polynomial(p_coefficients, x_abs, meta)\n"
                    "        Q = self._build_polynomial(q_coefficients, x_abs, meta)\n",
                    "        P = self._build_polynomial(p_coefficients, y, meta)\n"
                    "        Q = self._build_polynomial(q_coefficients, y, meta)\n",
                ),
            ),
        ),
    ),
    patterns=(("asin|acos",),),
)
