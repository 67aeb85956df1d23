"""Many runs of one experiment, on this machine or on others."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

from ._engines import Engine, Executor, Work, _close, _executor, _program
from ._experiment import _value as _toml
from ._penstock import Gathering, PenstockError, Plan
from ._tables import Rows, _library

if TYPE_CHECKING:
    from ._penstock import Source

_PLAIN = re.compile(r"[A-Za-z0-9.%_+-]+\Z")
_FILES = ("results.parquet", "sweep.json", "report.html")
# Most runs of a task, and tasks that wait at a time: an engine has work, and a sweep of a million runs does not lie in its queue.
_CHUNK = 16
_WAITING = 256


def _value(value: Any) -> str:
    """A value as it stands behind --set: what could be taken for something else stands in quotes."""
    if isinstance(value, str):
        plain = _PLAIN.match(value) and ".." not in value
        return value if plain else json.dumps(value, ensure_ascii=False)
    return _toml(value)


def _values(values: str | Sequence[Any] | float) -> str:
    if isinstance(values, str):
        return values
    if isinstance(values, (int, float)):
        return _value(values)
    return ",".join(_value(value) for value in values)


class Sweep:
    """The results of a sweep. `print` shows its table, a notebook its page.

    `arrow()`, `pandas()` and `polars()` have a row for each run: `point` (from 1), `seed`, each parameter as text and as a number with its unit
    (`link.up.rate_bit_s`), `expects_met`, `expects_unmet`, `refused`, and each figure with its unit in brackets (`call owd p99 [ms]`).
    """

    def __init__(self, text: str, files: Mapping[str, bytes], made: int, warnings: list[str]) -> None:
        self._text = text
        self._files = dict(files)
        self.summary: dict[str, Any] = json.loads(self._files["sweep.json"])
        """`sweep.json`: parameters, figures, and of each point the median of every figure with its confidence interval."""
        self.made = made
        """How many runs were made now; the others lay in the folder."""
        self.warnings = warnings
        """What could not work, told before a run."""

    @property
    def parquet(self) -> bytes:
        """`results.parquet`, a row for each run."""
        return self._files["results.parquet"]

    def points(self, *, every: bool = False) -> Rows:
        """A row for each point: its parameters, and the median of each figure in its unit (bit/s, ms, bytes, shares from 0 to 1): of those that the table shows, or of `every` one."""
        shown = [f["what"] for f in self.summary["figures"] if every or f["shown"]]
        rows = Rows()
        for point in self.summary["points"]:
            row: dict[str, Any] = dict(point["set"])
            row.update((what, point["figures"][what]["median"]) for what in shown if what in point["figures"])
            rows.append(row)
        return rows

    def arrow(self) -> Any:
        """A pyarrow.Table with a row for each run. Needs pyarrow."""
        pyarrow = _library("pyarrow", "tables")
        return importlib.import_module("pyarrow.parquet").read_table(pyarrow.BufferReader(self.parquet))

    def pandas(self) -> Any:
        """A pandas.DataFrame with a row for each run. Needs pandas and pyarrow."""
        _library("pandas", "pandas")
        return self.arrow().to_pandas()

    def polars(self) -> Any:
        """A polars.DataFrame with a row for each run. Needs polars and pyarrow."""
        return _library("polars", "polars").from_arrow(self.arrow())

    def report(self) -> str:
        """The page, which needs no network."""
        return self._files["report.html"].decode()

    def _repr_html_(self) -> str:
        page = self.report().replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe style="width:100%;height:40rem;border:0" srcdoc="{page}"></iframe>'

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<penstock.Sweep {len(self.summary['points'])} points, {len(self.summary['seeds'])} seeds>"


def _chunks(numbers: list[int], workers: int) -> Iterator[tuple[int, ...]]:
    size = max(1, min(_CHUNK, len(numbers) // (workers * 4)))
    return (tuple(numbers[i : i + size]) for i in range(0, len(numbers), size))


def _gather(
    plan: Plan,
    gathering: Gathering,
    executor: Executor,
    progress: Callable[[int, int], object] | None,
) -> tuple[int, list[str]]:
    """Makes what is missing, and keeps each result as soon as it is there."""
    missing = gathering.missing(plan)
    workers = max(1, int(getattr(executor, "workers", None) or os.cpu_count() or 1))
    chunks = _chunks(missing, workers)
    waiting = set[tuple[int, ...]]()
    done, warnings = plan.runs - len(missing), list[str]()

    def fill() -> None:
        while len(waiting) < max(_WAITING, 4 * workers) and (chunk := next(chunks, None)) is not None:
            waiting.add(chunk)
            executor.submit(Work(plan.task, _program(), chunk))

    try:
        fill()
        for work, (texts, said) in executor.results():
            # Whoever makes lost work again may come by it twice.
            if work.numbers not in waiting:
                continue
            if len(texts) != len(work.numbers):
                raise PenstockError(f"the engine gave {len(texts)} results for {len(work.numbers)} runs")
            for number, text in zip(work.numbers, texts):
                gathering.keep(plan, number, text)
            waiting.remove(work.numbers)
            warnings += [w for w in said if w not in warnings]
            done += len(texts)
            if progress is not None:
                progress(done, plan.runs)
            fill()
        if waiting:
            raise PenstockError(f"the engine gave no result for {sum(map(len, waiting))} runs")
    except BaseException:
        executor.cancel()
        raise
    return len(missing), warnings


def sweep(
    experiment: Source,
    set: Mapping[str, str | Sequence[Any] | float] | None = None,
    *,
    seeds: int | None = None,
    seed: int | None = None,
    design: str | None = None,
    points: int | None = None,
    figures: Sequence[str] = (),
    pareto: tuple[str, str] | None = None,
    on: str = "sim",
    engine: str | Executor | Engine | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Runs an experiment at many points: `penstock sweep`, with the same results byte for byte, whatever makes the runs.

    `set`: keys of the experiment file and their values, a list or a text as behind `--set`: `{"link.up.rate": ["1mbit", "2mbit"], "link.up.delay": "1ms..5ms/3"}`; without it,
    what the file's table `[sweep]` says. `seeds`: runs of each point, from `seed` on. `design`: "grid" (all combinations), "random" or "latin" with so many `points`. `figures`:
    what the table shows, in the words of expectations. `pareto`: two figures to find the best compromises between. `on`: "sim", "virtual" or "kernel".

    `engine`: None for threads of this process, `jobs` at a time; "ray" or "dask" for the cluster that is connected, or one of `jobs` workers on this machine
    (`pip install 'penstock[ray]'`, `'penstock[dask]'`); a `penstock.Executor` of your own; any Executor of concurrent.futures. Workers need the same wheel and nothing else: files that
    the experiment names travel with it.

    `out`: the sweep's folder. With it, what is broken off goes on where it was when it is called again. `progress(done, all)` is called as runs are done.

    Raises PenstockError for what is wrong with the experiment or the values, before the first run; what an engine raises when a worker dies.

    >>> from penstock import Experiment
    >>> line = Experiment("Line", duration="1s").host("a", eth0="10.0.0.1/24").host("b", eth0="10.0.0.2/24")
    >>> line = line.link("a:eth0", "b:eth0", name="up", rate="1mbit").flow("bulk", "a", "b", load="greedy")
    >>> result = sweep(line, {"link.up.rate": ["1mbit", "2mbit"]}, seeds=2)
    >>> [(row["link.up.rate"], round(row["bulk goodput"] / 1e6, 1)) for row in result.points()]  # Mbit/s
    [('1mbit', 0.9), ('2mbit', 1.9)]
    """
    wishes = {
        "set": [f"{path}={_values(values)}" for path, values in (set or {}).items()],
        "seeds": seeds,
        "seed": seed,
        "design": design,
        "points": points,
        "figures": list(figures),
        "pareto": list(pareto or ()),
    }
    if seeds is not None and not 1 <= seeds <= 1_000_000:
        raise ValueError(f"seeds is a number from 1 to 1000000, not {seeds}")
    if points is not None and not 1 <= points <= 1_000_000:
        raise ValueError(f"points is a number from 1 to 1000000, not {points}")
    if jobs is not None and not 1 <= jobs <= 1024:
        raise ValueError(f"jobs is a number from 1 to 1024, not {jobs}")
    if on == "kernel" and (engine is not None or jobs not in (None, 1)):
        raise ValueError("on kernel one run at a time: two would take each other's processor time")
    plan = Plan.open(experiment, json.dumps(wishes), on)
    at_once = 1 if on == "kernel" else jobs

    def fits(runs: int) -> None:
        if on == "sim":
            plan.fits(min(runs, plan.runs))

    folder = Path(tempfile.mkdtemp(prefix="penstock-sweep-")) if out is None else Path(out)
    try:
        gathering = Gathering(folder, plan, _program())
        try:
            executor = _executor(engine, plan, at_once, fits)
            try:
                made, warnings = _gather(plan, gathering, executor, progress)
            finally:
                _close(executor)
            text = gathering.whole(plan)
        finally:
            # Not left to the exception, which keeps what it has come by.
            gathering.close()
        return Sweep(text, {name: (folder / name).read_bytes() for name in _FILES}, made, warnings)
    finally:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)

