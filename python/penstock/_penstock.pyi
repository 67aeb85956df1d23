import os
from typing import Any, Mapping, Protocol, TypeAlias

__version__: str

class HasToml(Protocol):
    def toml(self) -> str: ...

Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | HasToml

class PenstockError(ValueError):
    """What is wrong, with its places."""

    faults: list[dict[str, Any]]
    """Each with file, line, column (from 1; 0 where there is none), message and help."""

class Series:
    """What changed over time, in long form, a row a sample: time_s, host, object, metric, value.

    An Arrow table for whatever takes one without a copy: pyarrow.table(series), polars.DataFrame(series), duckdb.sql("from series").
    """

    @property
    def column_names(self) -> list[str]:
        """time_s, host, object, metric, value."""
    @property
    def num_rows(self) -> int:
        """How many samples there are."""
    def arrow(self) -> Any:
        """A pyarrow.Table on the same memory. Needs pyarrow >= 14."""
    def pandas(self) -> Any:
        """A pandas.DataFrame. Needs pandas and pyarrow."""
    def polars(self) -> Any:
        """A polars.DataFrame. Needs polars >= 1."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...

class Chart:
    """A picture of curves over time. A notebook shows it."""

    @property
    def svg(self) -> str:
        """The picture as SVG."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as an SVG file; an earlier one there is replaced."""
    def _repr_svg_(self) -> str: ...

class Run:
    """A run and what was measured in it."""

    @property
    def record(self) -> dict[str, Any]:
        """The whole record, as record.json has it; units stand in the names: throughput_bit_s, rtt_ms."""
    @property
    def figures(self) -> dict[str, float]:
        """Figures by their words: "call owd p99". Rates in bit/s, times in ms, sizes in bytes, shares 0 to 1."""
    @property
    def succeeded(self) -> bool:
        """Whether every expectation was met and no program failed."""
    @property
    def warnings(self) -> list[str]:
        """What could not work, told before the run."""
    @property
    def outputs(self) -> list[str]:
        """What programs printed, in the order of record["apps"]."""
    @property
    def series(self) -> Series:
        """The series as an Arrow table: time_s, host, object, metric, value."""
    def figure(self, what: str) -> float | None:
        """One figure in the words of an expectation; None where the run has none. A PenstockError where there is no such figure."""
    def chart(self, metric: str, *, object: str | None = None, host: str | None = None) -> Chart:
        """A chart of one metric over time ("owd_ms"), a curve for each object that has it. A PenstockError where there is none."""
    def series_parquet(self) -> bytes:
        """The series as a Parquet file: time_s, host, object, metric, value."""
    def report(self) -> str:
        """The report, a page that needs no network."""
    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes the run folder, as the command does; an earlier run there is replaced."""
    def _repr_html_(self) -> str: ...

class Prompt:
    """A shell on a virtual machine."""

    def __init__(self) -> None: ...
    def line(self, text: str) -> tuple[str, str, int, bool]:
        """stdout, stderr, exit status, whether the shell has ended."""

class Plan:
    """What a sweep is going to run."""

    @staticmethod
    def open(experiment: Source, wishes: str, on: str) -> Plan:
        """Plans the sweep of an experiment; `wishes` are JSON."""
    @staticmethod
    def of(task: str) -> Plan:
        """The same plan from its task, elsewhere."""
    @property
    def task(self) -> str:
        """All that makes the same plan in another process, as JSON."""
    @property
    def runs(self) -> int:
        """How many runs there are."""
    @property
    def points(self) -> list[list[tuple[str, str]]]:
        """The points: path and value of each parameter."""
    @property
    def title(self) -> str:
        """The experiment's title."""
    def fits(self, at_once: int) -> None:
        """A PenstockError where so many runs at a time do not fit this machine's memory."""
    def make(self, numbers: list[int]) -> tuple[list[str], list[str]]:
        """Makes runs by their numbers: the result of each as text, and what cannot work."""
    def end(self) -> None:
        """Ends what is being made, in whatever thread, with a KeyboardInterrupt there."""

class Gathering:
    """A sweep's folder while results come in."""

    def __init__(self, folder: str | os.PathLike[str], plan: Plan, program: str) -> None: ...
    def missing(self, plan: Plan) -> list[int]:
        """The numbers of the runs that have no result yet."""
    def keep(self, plan: Plan, number: int, text: str) -> None:
        """Keeps the result of a run."""
    def whole(self, plan: Plan) -> str:
        """Writes the files of the whole sweep; its table as text."""
    def close(self) -> None:
        """Lets the folder go: another sweep may work there."""

def run(experiment: Source, *, seed: int | None = None, on: str = "sim") -> Run:
    """Runs an experiment: a file's name, a text of TOML, a dict as the file has it, or an Experiment.

    `seed`: in place of the file's. `on`: "sim", "virtual" (a real Linux in exact time) or "kernel" (this machine's, needs root). Raises PenstockError for what is wrong, with file, line
    and column; Ctrl-C ends it with a KeyboardInterrupt.
    """

def expectations(experiment: Source) -> list[tuple[str, str]]:
    """The expectations of an experiment: what and value of each."""

def ask(question: str) -> Any:
    """Answers a question in JSON."""

def bytes_per_s(rate: str) -> int:
    """A rate as tc writes it, in bytes a second."""
