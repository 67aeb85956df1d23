"""What makes the runs of a sweep: executors of one's own, a real Ray and a real Dask with workers that die. The bytes are those of one machine."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import penstock
from test_sweep import FILES, SET, files, line  # noqa: F401: a fixture

WORKERS = 2
# A machine that has other work answers its own cluster late, which then holds itself for dead.
os.environ.setdefault("RAY_health_check_failure_threshold", "60")
# A driver that is killed: it says how many results are kept, and waits for its end when there are enough.
DRIVER = """
import sys, time, penstock
def told(done, of):
    print(done, flush=True)
    if done >= {enough}:
        time.sleep(600)
penstock.sweep({line!r}, {set!r}, seeds=20, out={out!r}, engine={engine!r}, jobs=2, progress=told)
"""


def parent(process):
    return re.search(r"^PPid:\t(\d+)$", Path("/proc", process, "status").read_text(), re.MULTILINE)[1]


class Ray:
    """A cluster of Ray with two workers on this machine."""

    def __init__(self):
        self.ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'penstock[ray]'")

    def __enter__(self):
        self.ray.init(address="local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
        return self

    def __exit__(self, *_):
        self.ray.shutdown()

    def worker(self):
        """The process of a worker, one that makes runs if there is any. Ray names a worker by what it does; its parent is the raylet, whose parent began the cluster.
        The raylet has agents too, with names like these, and ends when one of them does."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                name = (folder / "cmdline").read_bytes()
                if name.startswith((b"ray::_call", b"ray::IDLE")) and parent(parent(folder.name)) == str(os.getpid()):
                    found.append((not name.startswith(b"ray::_call"), int(folder.name)))
            except OSError:
                pass
        return min(found)[1] if found else None

    def free(self):
        """Waits until every worker is free."""
        whole = self.ray.remote(num_cpus=WORKERS)(lambda: os.getpid())
        self.ray.get(whole.remote(), timeout=60)


class Dask:
    """A cluster of Dask with two workers on this machine."""

    def __init__(self):
        self.distributed = pytest.importorskip(
            "distributed", reason="distributed is not installed: pip install 'penstock[dask]'"
        )

    def __enter__(self):
        self.cluster = self.distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        )
        self.client = self.distributed.Client(self.cluster)
        self.pids = self.client.run(os.getpid)
        return self

    def __exit__(self, *_):
        self.client.close()
        self.cluster.close()

    def worker(self):
        """The process of a worker that was not killed before, if there is one that makes runs."""
        tasks = self.client.processing()
        left = [at for at in tasks if at in self.pids]
        return self.pids.pop(max(left, key=lambda at: len(tasks[at]))) if left else None

    def free(self):
        deadline = time.monotonic() + 60
        while any(self.client.processing().values()):
            assert time.monotonic() < deadline, "workers are still busy"
            time.sleep(0.1)


CLUSTERS = pytest.mark.parametrize("engine", ["ray", "dask"])


def cluster(engine):
    return {"ray": Ray, "dask": Dask}[engine]()


class Here:
    """The smallest executor: it makes work where it is asked for results, the last first."""

    workers = 1

    def __init__(self):
        self.waiting, self.cancelled = [], 0

    def submit(self, work):
        # As it would travel.
        self.waiting.append(pickle.loads(pickle.dumps(work)))

    def results(self):
        while self.waiting:
            work = self.waiting.pop()
            yield work, work()

    def cancel(self):
        self.cancelled += 1


def test_an_executor_of_ones_own_makes_the_same_bytes(line, tmp_path):
    penstock.sweep(line, SET, seeds=4, out=tmp_path / "threads")

    class Twice(Here):
        def results(self):
            for work, made in super().results():
                yield work, made
                # Whoever makes lost work again may give it twice.
                yield work, made

    for name, own in (("own", Here()), ("twice", Twice())):
        told = []
        result = penstock.sweep(line, SET, seeds=4, out=tmp_path / name, engine=own, progress=lambda *n: told.append(n))
        assert result.made == 24 and told[-1] == (24, 24) and not own.cancelled
        assert files(tmp_path / name) == files(tmp_path / "threads")


def test_an_executor_that_loses_work_is_told_of(line, tmp_path):
    class Forgets(Here):
        def results(self):
            work = self.waiting.pop()
            yield work, work()

    forgets = Forgets()
    with pytest.raises(penstock.PenstockError, match="gave no result for 18 runs"):
        penstock.sweep(line, SET, seeds=4, out=tmp_path / "own", engine=forgets)
    # What it made is kept.
    assert forgets.cancelled == 1
    assert penstock.sweep(line, SET, seeds=4, out=tmp_path / "own").made == 18

    class Short(Here):
        def results(self):
            for work, made in super().results():
                yield work, penstock.Made(made.texts[1:], made.warnings)

    with pytest.raises(penstock.PenstockError, match="gave 5 results for 6 runs"):
        penstock.sweep(line, SET, seeds=4, engine=Short())

    class Mixed(Here):
        def results(self):
            for work, made in super().results():
                yield work, penstock.Made(made.texts[::-1], made.warnings)

    with pytest.raises(penstock.PenstockError):
        penstock.sweep(line, SET, seeds=4, engine=Mixed())


@CLUSTERS
def test_clusters_make_the_same_bytes(engine, line, tmp_path):
    penstock.sweep(line, SET, seeds=4, out=tmp_path / "threads")
    # One begun for the sweep, then one that is there.
    cluster(engine)
    result = penstock.sweep(line, SET, seeds=4, out=tmp_path / "begun", engine=engine, jobs=WORKERS)
    assert result.made == 24 and files(tmp_path / "begun") == files(tmp_path / "threads")
    with cluster(engine):
        result = penstock.sweep(line, SET, seeds=4, out=tmp_path / "there", engine=engine)
        assert result.made == 24 and files(tmp_path / "there") == files(tmp_path / "threads")
        with pytest.raises(penstock.PenstockError, match="no link is called"):
            penstock.sweep(line, {"link.upp.rate": ["1mbit"]}, engine=engine)


@CLUSTERS
def test_a_cluster_goes_on_when_its_workers_are_killed(engine, line, tmp_path):
    whole = penstock.sweep(line, SET, seeds=100, out=tmp_path / "whole")
    killed = []
    with cluster(engine) as workers:

        def kill(*_):
            if len(killed) < 2 and (worker := workers.worker()) is not None:
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)

        result = penstock.sweep(line, SET, seeds=100, out=tmp_path / engine, engine=engine, progress=kill)
    assert killed and result.made == whole.made == 600
    assert files(tmp_path / engine) == files(tmp_path / "whole")


@CLUSTERS
def test_nothing_is_lost_when_the_sweep_itself_is_killed(engine, line, tmp_path):
    cluster(engine)
    penstock.sweep(line, SET, seeds=20, out=tmp_path / "whole")
    driver = tmp_path / "driver.py"
    out = str(tmp_path / "killed")
    text = DRIVER.format(line=str(line), set=SET, out=out, engine=engine, enough=30)
    # Dask's workers are processes that read the program again.
    driver.write_text("if __name__ == '__main__':\n" + "".join(f"    {row}\n" for row in text.strip().splitlines()))
    # A session of its own, so that what it leaves behind can be ended.
    process = subprocess.Popen([sys.executable, driver], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        done = 0
        while done < 30:
            said = process.stdout.readline()
            assert said, "the driver ended by itself"
            done = int(said)
        process.kill()
        process.wait(60)
        rest = penstock.sweep(line, SET, seeds=20, out=out, engine=engine, jobs=WORKERS)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.stdout.close()
    assert rest.made == 120 - done
    assert files(out) == files(tmp_path / "whole")
    assert penstock.sweep(line, SET, seeds=20, out=out).made == 0


@CLUSTERS
def test_what_is_broken_off_leaves_the_cluster_free(engine, line, tmp_path):
    class Enough(Exception):
        pass

    def enough(*_):
        raise Enough

    with cluster(engine) as workers:
        with pytest.raises(Enough):
            # The long ones alone are minutes of two processors.
            long = {"duration": ["400ms", "4000s"]}
            penstock.sweep(line, long, seeds=500, out=tmp_path / "broken", engine=engine, progress=enough)
        workers.free()
    assert not any((tmp_path / "broken" / name).exists() for name in FILES)
    kept = len(list((tmp_path / "broken" / "results").iterdir()))
    assert 0 < kept < 100
