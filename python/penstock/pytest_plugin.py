"""The plug-in of pytest: the fixture `penstock`, and experiments collected as tests.

`def test_voice(penstock): …` has the module with the runs of that test: when it fails, the report of each is written and named in the test's output. With `--penstock`, or with
`penstock_files` in the configuration, each experiment file is collected: a test that it runs, and one for each of its expectations.
"""

from __future__ import annotations

import fnmatch
import os
import re
from pathlib import Path
from typing import Any, Generator, Iterable, Iterator, Mapping

import pytest

import penstock as module


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("penstock", "experiments of penstock")
    group.addoption("--penstock", action="store_true", help="collect experiment files (*.toml with hosts) as tests")
    group.addoption(
        "--penstock-reports",
        metavar="DIR",
        default="penstock-reports",
        help="where the reports of failed tests go [default: penstock-reports]",
    )
    group.addoption("--penstock-seed", metavar="N", type=int, default=None, help="the seed of collected experiments")
    group.addoption("--penstock-on", metavar="GROUND", default="sim", help="the ground of collected experiments [default: sim]")
    parser.addini("penstock_files", "patterns of experiment files that are collected", type="args", default=[])


def _written(config: pytest.Config, name: str, runs: Iterable[module.Run]) -> list[str]:
    """Writes the reports of a test that failed; where they are."""
    folder = Path(config.rootpath, str(config.getoption("--penstock-reports")))
    paths = []
    for number, run in enumerate(runs, 1):
        path = folder / (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:120] + f"-{number}.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(run.report(), encoding="utf-8")
        paths.append(str(path))
    return paths


def _unmet(run: module.Run) -> list[str]:
    """What a run did not meet, a line each."""
    lines = []
    for expect in run.record["expects"]:
        if not expect["ok"]:
            measured = expect.get("measured")
            said = expect.get("why") or "not measured" if measured is None else f"measured {measured:g}"
            lines.append(f"{expect['what']} {expect['value']}: {said}")
    return lines


class Bench:
    """The fixture `penstock`: the module's functions, with the runs of one test kept for its report."""

    def __init__(self) -> None:
        self.runs: list[module.Run] = []
        """The runs of this test so far."""

    def run(self, experiment: str | os.PathLike[str] | Mapping[str, Any] | Any, **how: Any) -> module.Run:
        """`penstock.run`, kept for the report."""
        run = module.run(experiment, **how)
        self.runs.append(run)
        return run

    def expect(self, experiment: str | os.PathLike[str] | Mapping[str, Any] | Any, **how: Any) -> module.Run:
        """Runs an experiment and asserts that all its expectations are met and no program failed."""
        run = self.run(experiment, **how)
        unmet = _unmet(run)
        assert not unmet, "not met:\n  " + "\n  ".join(unmet)
        assert run.succeeded, "a program failed"
        return run

    def __getattr__(self, name: str) -> Any:
        return getattr(module, name)


_BENCH = pytest.StashKey[Bench]()


@pytest.fixture
def penstock(request: pytest.FixtureRequest) -> Bench:
    """The module penstock; the reports of this test's runs are written when it fails."""
    bench = Bench()
    request.node.stash[_BENCH] = bench
    return bench


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        bench = item.stash.get(_BENCH, None)
        runs = bench.runs if bench else []
        if isinstance(item, ExpectItem):
            run = item.parent.made if isinstance(item.parent, ExperimentFile) else None
            runs = [run] if isinstance(run, module.Run) else []
        paths = _written(item.config, item.nodeid, runs)
        if paths:
            report.sections.append(("penstock reports", "\n".join(paths)))
    return report


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ExperimentFile | None:
    if file_path.suffix != ".toml":
        return None
    patterns: list[str] = parent.config.getini("penstock_files")
    try:
        relative = file_path.relative_to(parent.config.rootpath).as_posix()
    except ValueError:
        relative = file_path.as_posix()
    wanted = any(fnmatch.fnmatch(relative, pattern) for pattern in patterns)
    if not wanted and not parent.config.getoption("--penstock"):
        return None
    text = file_path.read_text(encoding="utf-8", errors="replace")
    # Other files of TOML are none of ours, unless somebody says so.
    if not wanted and not re.search(r"^\s*\[host\.", text, re.MULTILINE):
        return None
    node: ExperimentFile = ExperimentFile.from_parent(parent, path=file_path)
    return node


class ExperimentFile(pytest.File):
    """An experiment: a test that it runs, and one for each expectation. It is run once."""

    made: module.Run | Exception | None = None

    def collect(self) -> Iterator[ExpectItem]:
        item: ExpectItem = ExpectItem.from_parent(self, name="runs")
        yield item
        names: dict[str, int] = {}
        for number, (what, value) in enumerate(module.expectations(self.path)):
            name = f"{what} {value}"
            names[name] = names.get(name, 0) + 1
            if names[name] > 1:
                name += f" ({names[name]})"
            item = ExpectItem.from_parent(self, name=name)
            item.number = number
            yield item

    def outcome(self) -> module.Run:
        if self.made is None:
            try:
                seed: int | None = self.config.getoption("--penstock-seed")
                on = str(self.config.getoption("--penstock-on"))
                self.made = module.run(self.path, seed=seed, on=on)
            except module.PenstockError as error:
                self.made = error
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Unmet(Exception):
    """An expectation that was not met, or a program that failed."""


class ExpectItem(pytest.Item):
    """One expectation; without a number: that the experiment runs and no program fails."""

    number: int | None = None

    def runtest(self) -> None:
        assert isinstance(self.parent, ExperimentFile)
        run = self.parent.outcome()
        if self.number is None:
            failed = [a for a in run.record["apps"] if a.get("exit") not in (None, 0)]
            if failed and not run.succeeded:
                raise Unmet("\n".join(f"{a['name']}: exit status {a['exit']}" for a in failed))
            return
        expect = run.record["expects"][self.number]
        if not expect["ok"]:
            raise Unmet("\n".join(line for line in _unmet(run) if line.startswith(f"{expect['what']} {expect['value']}:")))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, (Unmet, module.PenstockError)):
            return f"{self.path}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
