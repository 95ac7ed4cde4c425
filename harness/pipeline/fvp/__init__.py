"""Drive Arm's Fixed Virtual Platforms (FVPs): find them, run a program, read what it left.

Words: the *FVP* is Arm's simulator of a board, a proprietary executable of the host; the *runner*
is ExecuTorch's ``arm_executor_runner``, an ELF for the board that is built from ExecuTorch's source
tree with semihosting, loads a ``.pte`` and runs it; the *exchange folder* is the host's folder that
the runner reads and writes through semihosting.

``boards`` says which FVP simulates which family, ``discovery`` finds FVP and runner, ``command``
builds armdiff's own command line, ``exchange`` holds the folder, ``process`` runs with a time
limit, ``verdict`` reads the output, ``advice`` says what to install.

Facts are from ExecuTorch's ``backends/arm/test/runner_utils.py`` (conventions, options, checks),
``backends/arm/scripts/run_fvp.sh`` and ``examples/arm/executor_runner/arm_executor_runner.cpp``.
No torch import here. An FVP was not at hand when this was written: what is tested is this side of
the files and the command line, against a stand-in (``tests/fvp_stand_in.py``).
"""
