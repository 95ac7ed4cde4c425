"""Which legs a choice of engine selects, and when it cannot be served."""

import pytest

from harness.case.errors import CannotRun
from harness.case.target import parse_target
from harness.evidence.references import FVP, MODEL, TOSA
from harness.pipeline.engines import check_engine, left_out

U55, PLAIN = parse_target("ethos-u55-128"), parse_target("TOSA-1.0+INT")


@pytest.mark.parametrize(("choice", "skipped"), [("default", None), ("both", None), ("model", FVP), ("fvp", MODEL)])
def test_a_choice_leaves_out_the_other_engine_and_nothing_else(choice, skipped):
    reasons = {leg: left_out(leg, choice, U55) for leg in (TOSA, MODEL, FVP)}
    expected = f"not asked for: --ethos-u-engine {choice}"
    assert reasons == {leg: expected if leg == skipped else None for leg in reasons}
    assert all(left_out(leg, choice, PLAIN) is None for leg in reasons)


def test_an_explicit_fvp_must_be_there_for_every_ethos_u_target():
    def missing(target):
        return None if target.name == "ethos-u55-128" else f"no FVP for {target.name}"

    u85 = parse_target("ethos-u85-256")
    for choice in ("fvp", "both"):
        check_engine(choice, [PLAIN, U55], missing)
        with pytest.raises(
            CannotRun, match=f"--ethos-u-engine {choice}: no FVP for ethos-u85-256; install it, or"
        ) as error:
            check_engine(choice, [U55, u85], missing)
        assert error.value.exit_status == 3
    for choice in ("default", "model"):
        check_engine(choice, [u85], missing)
