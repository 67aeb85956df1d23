"""The plug-in of pytest, in runs of pytest within pytest."""

import shutil
import subprocess
import sys
from pathlib import Path

from test_penstock import LINE

GOOD = LINE + '[[expect]]\nwhat = "bulk goodput"\nvalue = ">5mbit"\n'
BAD = GOOD + '[[expect]]\nwhat = "bulk goodput"\nvalue = ">50mbit"\n'


def test_the_fixture_attaches_reports_to_failures(pytester):
    pytester.makepyfile(
        f"""
        LINE = {GOOD!r}

        def test_good(penstock):
            run = penstock.expect(LINE, seed=2)
            assert run.figure("bulk goodput") > 5e6
            assert penstock.check("tc qdisc add dev eth0 root fq_codel") == []

        def test_bad(penstock):
            penstock.expect({BAD!r})
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*bulk goodput >50mbit: measured *", "*penstock reports*"])
    reports = list(pytester.path.glob("penstock-reports/*.html"))
    assert len(reports) == 1 and "test_bad" in reports[0].name
    assert reports[0].read_text().lower().startswith("<!doctype html>")


def test_experiments_are_collected(pytester):
    (pytester.path / "good.toml").write_text(GOOD)
    (pytester.path / "bad.toml").write_text(BAD)
    (pytester.path / "wrong.toml").write_text(GOOD.replace("rate = ", "rte = "))
    (pytester.path / "other.toml").write_text("[tool.x]\ny = 1\n")
    # Nothing without being asked.
    assert pytester.runpytest().ret == 5
    result = pytester.runpytest("--penstock", "-v", "--ignore", "wrong.toml")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*bad.toml: bulk goodput >50mbit: measured *", "*penstock reports*"])
    result = pytester.runpytest("--penstock", "wrong.toml")
    assert result.ret != 0
    result.stdout.fnmatch_lines(['*wrong.toml:9:1*'])


def test_the_configuration_names_them(pytester):
    pytester.makeini("[pytest]\npenstock_files = lab/*.toml\n")
    (pytester.path / "lab").mkdir()
    (pytester.path / "lab/good.toml").write_text(GOOD)
    (pytester.path / "bad.toml").write_text(BAD)
    result = pytester.runpytest("--penstock-seed", "9")
    result.assert_outcomes(passed=2)


def test_the_command_is_installed_beside_the_module():
    command = shutil.which("penstock", path=str(Path(sys.executable).parent))
    assert command, "the wheel holds no command"
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    import penstock

    assert said.split() == ["penstock", penstock.__version__]
