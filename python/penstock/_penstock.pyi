import os
from typing import Any, Mapping, Protocol

__version__: str

class _HasToml(Protocol):
    def toml(self) -> str: ...

class PenstockError(ValueError):
    """What is wrong, with its places."""

    faults: list[dict[str, Any]]
    """Each with file, line, column (from 1), message and help."""

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
    def series(self) -> Any:
        """The series as a pyarrow.Table: time_s, host, object, metric, value. Needs pyarrow."""
    def figure(self, what: str) -> float | None:
        """One figure in the words of an expectation; None where the run has none."""
    def series_parquet(self) -> bytes:
        """The series as a Parquet file: time_s, host, object, metric, value."""
    def report(self) -> str:
        """The report, a page that needs no network."""
    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes the run folder, as the command does."""
    def _repr_html_(self) -> str: ...

class Prompt:
    """A shell on a virtual machine."""

    def __init__(self) -> None: ...
    def line(self, text: str) -> tuple[str, str, int, bool]:
        """stdout, stderr, exit status, whether the shell has ended."""

def run(
    experiment: str | os.PathLike[str] | Mapping[str, Any] | _HasToml, *, seed: int | None = None, on: str = "sim"
) -> Run:
    """Runs an experiment: a file's name, a text of TOML, a dict as the file has it, or an Experiment."""

def expectations(experiment: str | os.PathLike[str] | Mapping[str, Any] | _HasToml) -> list[tuple[str, str]]:
    """The expectations of an experiment: what and value of each."""

def ask(question: str) -> Any:
    """Answers a question in JSON."""
