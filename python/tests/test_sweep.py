"""Sweeps: the same bytes, whatever makes the runs."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import penstock

LINE = """title = "Line"
duration = "400ms"
[host.a]
eth0 = "10.0.0.1/24"
setup = "@queue.sh"
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
name = "up"
ends = ["a:eth0", "b:eth0"]
rate = "1mbit"
delay = "2ms"
[[flow]]
name = "call"
from = "a"
to = "b"
udp = true
load = { size = 500, gap = { mean = "10ms" } }
[[expect]]
what = "call owd p99"
value = "<5ms"
"""
SET = {"link.up.rate": ["1mbit", "2mbit"], "link.up.delay": "1ms..5ms/3"}
FILES = ("results.parquet", "sweep.json", "report.html")


@pytest.fixture
def line(tmp_path):
    (tmp_path / "queue.sh").write_text("tc qdisc add dev eth0 root pfifo limit 10\n")
    (tmp_path / "line.toml").write_text(LINE)
    return tmp_path / "line.toml"


def files(folder):
    return {name: (Path(folder) / name).read_bytes() for name in FILES}


def commands(line, out):
    """The folder as the command makes it."""
    command = Path(sys.executable).parent / "penstock"
    values = [f"--set={path}={v if isinstance(v, str) else ','.join(v)}" for path, v in SET.items()]
    subprocess.run([command, "sweep", line, *values, "--seeds=4", f"--out={out}"], check=True, capture_output=True)
    return files(out)


def test_threads_make_what_the_command_makes(line, tmp_path):
    told = []
    result = penstock.sweep(line, SET, seeds=4, out=tmp_path / "own", progress=lambda *n: told.append(n))
    assert files(tmp_path / "own") == commands(line, tmp_path / "command")
    assert result.made == 24 and told[-1] == (24, 24)
    assert "link.up.rate" in str(result) and result.report().lower().startswith("<!doctype html>")
    assert len(result.points()) == 6 and result.arrow().num_rows == 24
    assert list(result.points()[0]) == ["link.up.delay", "link.up.rate", "call owd p99"]
    assert result.points()[0]["call owd p99"] > 1 and result.points(every=True)[0]["call loss"] == 0
    # Once more: nothing is run twice. One more seed: only that is.
    assert penstock.sweep(line, SET, seeds=4, out=tmp_path / "own").made == 0
    assert penstock.sweep(line, SET, seeds=5, out=tmp_path / "own").made == 6


def test_processes_make_the_same_bytes_without_the_files(line, tmp_path, monkeypatch):
    penstock.sweep(line, SET, seeds=4, out=tmp_path / "threads")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    context = __import__("multiprocessing").get_context("spawn")
    monkeypatch.chdir(elsewhere)
    with concurrent.futures.ProcessPoolExecutor(2, context) as pool:
        penstock.sweep(line, SET, seeds=4, out=tmp_path / "processes", engine=pool)
    assert files(tmp_path / "processes") == files(tmp_path / "threads")


def test_a_killed_worker_loses_nothing(line, tmp_path):
    context = __import__("multiprocessing").get_context("spawn")
    whole = penstock.sweep(line, SET, seeds=60, out=tmp_path / "whole")
    kept = []
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        worker = pool.submit(os.getpid).result()

        def kill(done, _):
            kept.append(done)
            if len(kept) == 1:
                os.kill(worker, signal.SIGKILL)

        with pytest.raises(concurrent.futures.process.BrokenProcessPool):
            penstock.sweep(line, SET, seeds=60, out=tmp_path / "killed", engine=pool, progress=kill)
    rest = penstock.sweep(line, SET, seeds=60, out=tmp_path / "killed")
    assert rest.made == 360 - kept[-1] > 0 and whole.made == 360
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_a_builder_and_a_dict_are_swept_in_memory():
    e = penstock.Experiment("Line", duration="400ms")
    e.host("a", eth0="10.0.0.1/24").host("b", eth0="10.0.0.2/24")
    e.link("a:eth0", "b:eth0", name="up", rate="1mbit").flow("bulk", "a", "b", load="greedy")
    result = penstock.sweep(e, {"link.up.rate": ["1mbit", "2mbit"]}, seeds=2, figures=["bulk goodput"])
    low, high = (row["bulk goodput"] for row in result.points())
    assert 0.8e6 < low < 1e6 < 1.6e6 < high < 2e6
    assert "<iframe" in result._repr_html_()
    loads = penstock.sweep(e, {"flow.bulk.load": ["greedy", {"bytes": "10k"}], "host.a.setup": [["true", "true"]]})
    assert len(loads.points()) == 2
    queues = penstock.sweep(e, {"host.a.setup": ["tc qdisc add dev eth0 root fq_codel", "true, true"]})
    assert [row["host.a.setup"] for row in queues.points()][1] == "true, true"


def test_what_is_wrong_is_told_before_the_first_run(line, tmp_path):
    with pytest.raises(penstock.PenstockError, match='no link is called "upp"') as caught:
        penstock.sweep(line, {"link.upp.rate": ["1mbit"]})
    assert (caught.value.faults[0]["file"], caught.value.faults[0]["column"]) == ("--set", 6)
    with pytest.raises(penstock.PenstockError, match="nothing is varied"):
        penstock.sweep(line)
    with pytest.raises(ValueError, match='"spark" is not an engine'):
        penstock.sweep(line, SET, engine="spark")
    with pytest.raises(TypeError, match="has a method submit"):
        penstock.sweep(line, SET, engine=5)
    with pytest.raises(ValueError, match="one run at a time"):
        penstock.sweep(line, SET, on="kernel", jobs=2)
    with pytest.raises(ValueError, match="seeds is a number"):
        penstock.sweep(line, SET, seeds=0)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    with pytest.raises(penstock.PenstockError, match="holds notes.txt"):
        penstock.sweep(line, SET, out=tmp_path / "other")


def test_another_build_is_refused():
    with pytest.raises(penstock.PenstockError, match="install the same wheel on all machines"):
        penstock.Work("{}", "0.0.0 something", (0,))()


def test_a_signal_ends_a_sweep(line, tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = threading.Event()

    def interrupt():
        begun.wait(30)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            long = {"duration": ["1s", "80000s", "80001s"]}
            penstock.sweep(line, long, out=tmp_path / "long", jobs=1, progress=lambda *_: begun.set())
    finally:
        signal.signal(signal.SIGINT, before)
    # What was run before is there.
    assert penstock.sweep(line, {"duration": ["1s"]}, out=tmp_path / "long").made == 0
