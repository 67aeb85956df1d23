"""What makes the runs of a sweep: threads here, a cluster, or what somebody else brings."""

from __future__ import annotations

import concurrent.futures
import functools
import hashlib
import os
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Protocol

from . import _penstock
from ._penstock import PenstockError, Plan, __version__
from ._tables import _library

# How often work may be lost with its workers on Dask, each time after as many workers as Dask itself allows.
_LOST = 3


@functools.lru_cache(maxsize=1)
def _program() -> str:
    """Which build this is: results of another are not taken for its own."""
    built = Path(str(_penstock.__file__)).read_bytes()
    return f"{__version__} {hashlib.blake2b(built, digest_size=8).hexdigest()}"


@functools.lru_cache(maxsize=4)
def _planned(task: str) -> Plan:
    return Plan.of(task)


class Made(NamedTuple):
    """What a piece of work made."""

    texts: list[str]
    """The result of each run, in the order of the work's numbers."""
    warnings: list[str]
    """What could not work, told before a run."""


@dataclass(frozen=True)
class Work:
    """Some runs of a sweep, for one worker. It is pickled to wherever that is; called there, it makes the runs.

    The worker needs the same wheel and no file: what the experiment names is in it.
    """

    task: str
    """The sweep, as JSON."""
    program: str
    """The build that planned it."""
    numbers: tuple[int, ...]
    """The numbers of its runs."""

    def __call__(self) -> Made:
        """Makes the runs. Raises PenstockError in a worker of another build."""
        if self.program != _program():
            raise PenstockError(
                f"a worker has penstock {_program()} and the sweep is that of {self.program}: "
                "install the same wheel on all machines"
            )
        return Made(*_planned(self.task).make(list(self.numbers)))


class Executor(Protocol):
    """What makes the runs of a sweep: an object with these three methods is an `engine`.

    It may have an attribute `workers` too: how many runs it makes at a time. Work is divided by it; without it, by the processors of this machine.

    A worker that dies is for the executor to handle: it does the work again, or raises an exception. What was made before is kept in the sweep's folder.

    >>> import penstock
    >>> class Here:
    ...     workers = 1
    ...     def __init__(self):
    ...         self.waiting = []
    ...     def submit(self, work):
    ...         self.waiting.append(work)
    ...     def results(self):
    ...         while self.waiting:
    ...             work = self.waiting.pop()
    ...             yield work, work()
    ...     def cancel(self):
    ...         self.waiting.clear()
    >>> line = penstock.Experiment("Line", duration="1s").host("a", eth0="10.0.0.1/24").host("b", eth0="10.0.0.2/24")
    >>> line = line.link("a:eth0", "b:eth0", name="up", rate="1mbit").flow("bulk", "a", "b", load="greedy")
    >>> penstock.sweep(line, {"link.up.rate": ["1mbit", "2mbit"]}, seeds=3, engine=Here()).made
    6
    """

    def submit(self, work: Work) -> None:
        """Takes work, and returns before it is done: `work()` makes it, in whatever process, of whatever machine, on which the same wheel is installed."""
        ...

    def results(self) -> Iterator[tuple[Work, Made]]:
        """Yields each piece of work with what it made, as soon as it is there and in whatever order. It ends when nothing that was submitted is missing; between two results
        more may be submitted."""
        ...

    def cancel(self) -> None:
        """The sweep is broken off: forgets what waits and ends what is being made, as far as it can."""
        ...


class Engine(Protocol):
    """An `Executor` of `concurrent.futures`, or another object with such a `submit`; it is taken as an engine too."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Calls `fn(*args)` somewhere, later."""
        ...


def _call(work: Work) -> Made:
    return work()


class _Futures:
    """An executor of concurrent.futures."""

    def __init__(self, engine: Engine) -> None:
        self._submit = engine.submit
        self._waiting: dict[Future[Any], Work] = {}

    def submit(self, work: Work) -> None:
        self._waiting[self._submit(_call, work)] = work

    def results(self) -> Iterator[tuple[Work, Made]]:
        while self._waiting:
            ready, _ = concurrent.futures.wait(self._waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ready:
                yield self._waiting.pop(future), future.result()

    def cancel(self) -> None:
        for future in self._waiting:
            future.cancel()


class _Threads(_Futures):
    """Threads of this process: the interpreter's lock is let go while they simulate."""

    def __init__(self, plan: Plan, jobs: int) -> None:
        self.workers = jobs
        self._plan = plan
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        super().__init__(self._pool)

    def submit(self, work: Work) -> None:
        self._waiting[self._pool.submit(self._make, work)] = work

    def _make(self, work: Work) -> Made:
        return Made(*self._plan.make(list(work.numbers)))

    def cancel(self) -> None:
        self._plan.end()
        super().cancel()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Ray:
    """Ray: the cluster that is connected or named by RAY_ADDRESS, or one begun on this machine. Work whose worker dies is made again."""

    def __init__(self, jobs: int | None, fits: Callable[[int], None]) -> None:
        self._ray = ray = _library("ray", "ray")
        self._begun = not ray.is_initialized()
        if self._begun:
            own: dict[str, Any] = {}
            if not os.environ.get("RAY_ADDRESS"):
                fits(jobs or os.cpu_count() or 1)
                # Whatever cluster may once have been begun on this machine by hand.
                own = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
            ray.init(log_to_driver=False, **own)
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._call = ray.remote(max_retries=-1)(_call)
        self._waiting: dict[Any, Work] = {}

    def submit(self, work: Work) -> None:
        self._waiting[self._call.remote(work)] = work

    def results(self) -> Iterator[tuple[Work, Made]]:
        while self._waiting:
            ready, _ = self._ray.wait(list(self._waiting), num_returns=1)
            for ref in ready:
                yield self._waiting.pop(ref), self._ray.get(ref)

    def cancel(self) -> None:
        for ref in self._waiting:
            self._ray.cancel(ref, force=True)

    def close(self) -> None:
        """Ends Ray where it was begun here."""
        if self._begun:
            self._ray.shutdown()


class _Dask:
    """Dask: the client there is, or a cluster on this machine. Work whose worker dies is made again."""

    def __init__(self, jobs: int | None, fits: Callable[[int], None]) -> None:
        self._distributed = distributed = _library("distributed", "dask")
        self._own: Any = None
        try:
            self._client = distributed.get_client()
        except ValueError:
            fits(jobs or os.cpu_count() or 1)
            size = {} if jobs is None else {"n_workers": jobs, "threads_per_worker": 1}
            self._own = self._client = distributed.Client(processes=True, dashboard_address=None, **size)
        self.workers = max(1, sum(self._client.nthreads().values()))
        self._ready = distributed.as_completed(loop=self._client.loop)
        self._waiting: dict[str, tuple[Any, Work]] = {}
        self._lost: dict[Work, int] = {}

    def submit(self, work: Work) -> None:
        future = self._client.submit(_call, work, pure=False)
        self._waiting[future.key] = (future, work)
        self._ready.add(future)

    def results(self) -> Iterator[tuple[Work, Made]]:
        for future in self._ready:
            _, work = self._waiting.pop(future.key)
            try:
                made: Made = future.result()
            except self._distributed.scheduler.KilledWorker:
                self._lost[work] = self._lost.get(work, 0) + 1
                if self._lost[work] >= _LOST:
                    raise
                self.submit(work)
                continue
            yield work, made

    def cancel(self) -> None:
        self._client.cancel([future for future, _ in self._waiting.values()], force=True)

    def close(self) -> None:
        """Ends the cluster where it was begun here."""
        if self._own is not None:
            self._own.close()


def _executor(
    engine: str | Executor | Engine | None, plan: Plan, jobs: int | None, fits: Callable[[int], None]
) -> Executor:
    """The executor that an engine stands for. `fits` refuses so many runs at a time where they are made on this machine."""
    if engine is None:
        at_once = jobs or os.cpu_count() or 1
        fits(at_once)
        return _Threads(plan, at_once)
    if engine == "ray":
        return _Ray(jobs, fits)
    if engine == "dask":
        return _Dask(jobs, fits)
    if isinstance(engine, str):
        raise ValueError(
            f'"{engine}" is not an engine: take "ray", "dask", a penstock.Executor, an Executor of concurrent.futures, or None'
        )
    if not callable(getattr(engine, "submit", None)):
        raise TypeError("an engine has a method submit, as an Executor of penstock or of concurrent.futures has")
    own: Any = engine
    if callable(getattr(own, "results", None)) and callable(getattr(own, "cancel", None)):
        executor: Executor = own
        return executor
    return _Futures(own)


def _close(executor: Executor) -> None:
    """Ends an executor that was begun by `_executor`. Whoever made another also ends it."""
    if isinstance(executor, (_Threads, _Ray, _Dask)):
        executor.close()
