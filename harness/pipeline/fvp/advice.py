"""What to install so that a target runs on Arm's FVP, step by step, for ``armdiff doctor``.

Commands are those of ExecuTorch's source tree: ``examples/arm/setup.sh`` (which fetches FVPs and
toolchain, and asks for agreement to Arm's licence), ``backends/arm/scripts/build_executor_runner.sh``
and the options that ``backends/arm/test/setup_testing.sh`` (1.5.1) builds its runners with.
"""

from __future__ import annotations

from harness.compat.releases import installed
from harness.compat.vela import default_configuration
from harness.pipeline.fvp.boards import Board, macs_of
from harness.pipeline.fvp.discovery import build_folder

_KERNELS = ("quantized_decomposed::quantize_per_tensor.out", "quantized_decomposed::dequantize_per_tensor.out")
_POOL = "-DET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE=83886080"


def binary_steps(board: Board) -> str:
    """How to get the FVP."""
    release = installed().get("executorch", "1.5.1")
    steps = [
        "FVPs are Arm's, under a licence of their own (EULA), in no package registry. "
        "ExecuTorch's source tree has a script that downloads them and the Arm toolchain:",
        f"1. git clone --branch v{release} --recurse-submodules https://github.com/pytorch/executorch && cd executorch",
        "2. read the licence that comes with the FVP, then: examples/arm/setup.sh --i-agree-to-the-contained-eula",
        "3. source examples/arm/arm-scratch/setup_path.sh   (puts FVPs and toolchain on PATH)",
    ]
    if board.folder == "corstone-320":
        steps.append(
            "   (this FVP needs its python/lib on LD_LIBRARY_PATH: setup_path.sh puts it there, and so does armdiff "
            "where it is beside the FVP's models folder)"
        )
    steps.append(f"or have the FVP already: put {board.binary} on PATH, or set ARMDIFF_FVP_{board.variable} to it")
    return "\n".join(steps)


def runner_command(board: Board, target: str) -> str:
    """What builds the runner for a target, in ExecuTorch's source tree."""
    wanted = default_configuration(target)
    return (
        f"backends/arm/scripts/build_executor_runner.sh --pte=semihosting --target={target} "
        f"--system_config={wanted.system_config} --memory_mode={wanted.memory_mode} "
        f"--select_ops_list={','.join(_KERNELS)} --extra_build_flags={_POOL} "
        f"--output=arm_test/{build_folder(board, f'_{target}')}"
    )


def runner_steps(board: Board, target: str) -> str:
    """How to build the runner for a target."""
    wanted = default_configuration(target)
    return "\n".join(
        [
            f"The runner must be built for the target's MAC count, system configuration and memory mode ({wanted}); "
            "in ExecuTorch's source tree, after setup.sh and setup_path.sh:",
            f"1. {runner_command(board, target)}",
            "   (programs that leave operators on the CPU need their kernels in --select_ops_list too: "
            "a skipped run names those that are missing)",
            "2. export EXECUTORCH_ROOT=$PWD   (armdiff looks there, in the current folder and in its parents)",
            f"or have one already: set ARMDIFF_FVP_ELF_{board.variable}_{macs_of(target)} to the ELF",
        ]
    )
