"""Where armdiff looks for Arm's FVP and its runner, and what doctor says where there is none; no torch."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.case.errors import BadInput
from harness.compat.vela import VelaConfiguration, default_configuration
from harness.pipeline.doctor import fvp_checks
from harness.pipeline.fvp.boards import BOARDS
from harness.pipeline.fvp.discovery import (
    FvpMissing,
    build_folder,
    find_binary,
    find_runner,
    run_environment,
    search_roots,
    time_limit,
)

U55, U65, U85 = (BOARDS[name] for name in ("ethos-u55", "ethos-u65", "ethos-u85"))
TOOLS = "/usr/bin:/bin"


def executable(path, text="#!/bin/sh\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_binary_is_the_one_of_the_variable_or_the_one_on_path(tmp_path):
    with pytest.raises(FvpMissing, match="FVP_Corstone_SSE-320 is not on PATH"):
        find_binary(U85, {"PATH": str(tmp_path)})
    on_path = executable(tmp_path / "bin" / U85.binary)
    environment = {"PATH": str(on_path.parent)}
    assert find_binary(U85, environment) == on_path
    named = executable(tmp_path / "mine")
    assert find_binary(U85, {**environment, "ARMDIFF_FVP_U85": str(named)}) == named
    with pytest.raises(FvpMissing, match="ARMDIFF_FVP_U85 is /none, which is no executable file"):
        find_binary(U85, {**environment, "ARMDIFF_FVP_U85": "/none"})


def test_an_installation_s_own_python_goes_on_the_library_path(tmp_path):
    binary = executable(tmp_path / "models" / "Linux64" / U85.binary)
    assert run_environment(binary, {"A": "1"}) == {"A": "1"}
    library = tmp_path / "python" / "lib"
    library.mkdir(parents=True)
    assert run_environment(binary, {})["LD_LIBRARY_PATH"] == str(library)
    again = run_environment(binary, {"LD_LIBRARY_PATH": f"/a:{library}"})
    assert again["LD_LIBRARY_PATH"] == f"{library}:/a"


def elf(root, folder, place=""):
    file = root / "arm_test" / folder / place / "arm_executor_runner"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    return file


def cache(root, folder, target, system, memory):
    lines = ("# CMake", f"ETHOSU_TARGET_NPU_CONFIG:UNINITIALIZED={target}", "X:BOOL=ON")
    lines += (f"SYSTEM_CONFIG:STRING={system}", f"MEMORY_MODE:STRING={memory}")
    (root / "arm_test" / folder / "CMakeCache.txt").write_text("\n".join(lines) + "\n")


PLAIN, PORTABLE = build_folder(U55), build_folder(U55, portable=True)
U55_128 = VelaConfiguration("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram")


def test_upstream_s_folders_are_named_as_upstream_names_them():
    assert PLAIN == "arm_semihosting_executor_runner_corstone-300"
    assert build_folder(U65) == "arm_semihosting_executor_runner_corstone-300-u65"
    assert build_folder(U85, portable=True) == "arm_semihosting_executor_runner_portable-ops_corstone-320"


@pytest.mark.parametrize(
    "place", ["", "Release", "examples/arm/executor_runner", "examples/arm/executor_runner/Release"]
)
def test_a_runner_is_found_in_upstream_s_places(tmp_path, place):
    file = elf(tmp_path, PLAIN, place)
    found = find_runner(U55, U55_128, {"EXECUTORCH_ROOT": str(tmp_path)}, Path("/"))
    assert (found.elf, found.portable, found.built) == (file, False, U55_128)


def test_a_runner_is_found_in_a_parent_of_the_current_folder(tmp_path):
    file = elf(tmp_path, PLAIN)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_runner(U55, U55_128, {}, tmp_path / "a" / "b").elf == file
    assert search_roots({"GITHUB_WORKSPACE": "/w"}, tmp_path)[:2] == [Path("/w"), tmp_path]


def test_portable_kernels_are_preferred_for_programs_that_need_them(tmp_path):
    plain, portable = elf(tmp_path, PLAIN), elf(tmp_path, PORTABLE)
    environment = {"EXECUTORCH_ROOT": str(tmp_path)}
    assert find_runner(U55, U55_128, environment, Path("/")).elf == plain
    assert find_runner(U55, U55_128, environment, Path("/"), portable=True).elf == portable
    plain.unlink()
    assert find_runner(U55, U55_128, environment, Path("/")).elf == portable


def test_a_runner_that_was_built_for_something_else_does_not_fit(tmp_path):
    environment = {"EXECUTORCH_ROOT": str(tmp_path)}
    with pytest.raises(FvpMissing, match="there is no runner ELF for ethos-u55-128"):
        find_runner(U55, U55_128, environment, Path("/"))
    elf(tmp_path, PLAIN)
    larger = replace(U55_128, target="ethos-u55-256")
    with pytest.raises(FvpMissing, match=r"built for ethos-u55-128 .*\) does not fit ethos-u55-256"):
        find_runner(U55, larger, environment, Path("/"))
    cache(tmp_path, PLAIN, "ethos-u55-256", "Ethos_U55_High_End_Embedded", "Shared_Sram")
    assert find_runner(U55, larger, environment, Path("/")).built == larger
    cache(tmp_path, PLAIN, "ethos-u55-256", "Ethos_U55_High_End_Embedded", "Sram_Only")
    with pytest.raises(FvpMissing, match=r"Sram_Only.*does not fit.*Shared_Sram"):
        find_runner(U55, larger, environment, Path("/"))


def test_a_folder_for_the_target_goes_before_upstream_s(tmp_path):
    elf(tmp_path, build_folder(U85))
    wanted = default_configuration("ethos-u85-256", "1.5.1")
    with pytest.raises(FvpMissing, match="built for ethos-u85-128"):
        find_runner(U85, wanted, {"EXECUTORCH_ROOT": str(tmp_path)}, Path("/"))
    own = elf(tmp_path, build_folder(U85, "_ethos-u85-256"))
    assert find_runner(U85, wanted, {"EXECUTORCH_ROOT": str(tmp_path)}, Path("/")).elf == own


def test_a_runner_that_a_variable_names_is_taken_as_it_is(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("")
    environment = {"ARMDIFF_FVP_ELF_U85": str(one), "ARMDIFF_FVP_ELF_U85_256": str(other)}
    assert find_runner(U85, default_configuration("ethos-u85-512"), environment, Path("/")).elf == one
    with pytest.raises(FvpMissing, match=r"ARMDIFF_FVP_ELF_U85_256 is .*other, which is no file"):
        find_runner(U85, default_configuration("ethos-u85-256"), environment, Path("/"))


def test_the_time_limit_is_checked():
    assert time_limit({}) == 60.0
    assert time_limit({"ARMDIFF_FVP_TIME_LIMIT": "2.5"}) == 2.5
    for text in ("soon", "0", "-1", "nan", "1000"):
        with pytest.raises(BadInput, match=r"ARMDIFF_FVP_TIME_LIMIT: .* is no time limit; set seconds, at most 100"):
            time_limit({"ARMDIFF_FVP_TIME_LIMIT": text})


def test_doctor_has_the_steps_for_every_family_where_there_is_nothing(tmp_path):
    checks = {item.name: item for item in fvp_checks({"PATH": str(tmp_path)}, tmp_path)}
    assert len(checks) == 6
    assert not any(item.ok for item in checks.values())
    for board in BOARDS.values():
        binary = checks[f"FVP for {board.family}"].remedy
        assert all(word in binary for word in ("--i-agree-to-the-contained-eula", "setup_path.sh", board.binary))
        runner = checks[f"FVP runner for {board.family}"].remedy
        assert f"/{build_folder(board)}_{board.family}-" in runner
        assert all(
            word in runner for word in ("--pte=semihosting", "--memory_mode=", "--system_config=", "EXECUTORCH_ROOT")
        )
    assert "--target=ethos-u85-256 --system_config=Ethos_U85_SYS_DRAM_Mid --memory_mode=Sram_Only" in runner
    assert "LD_LIBRARY_PATH" in binary
