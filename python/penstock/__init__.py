"""A laboratory for Linux traffic control.

>>> import penstock
>>> line = {
...     "duration": "2s",
...     "host": {"a": {"eth0": "10.0.0.1/24"}, "b": {"eth0": "10.0.0.2/24"}},
...     "link": [{"ends": ["a:eth0", "b:eth0"], "rate": "10mbit", "delay": "5ms"}],
...     "app": [{"on": "a", "run": "ping -c 1 10.0.0.2"}],
... }
>>> run = penstock.run(line, seed=7)
>>> run.succeeded
True
>>> round(run.figure("a ping rtt p50"), 1)  # ms
20.3
"""

from ._engines import Engine, Executor, Made, Work
from ._experiment import Experiment
from ._machine import Machine, Said
from ._penstock import Chart, PenstockError, Run, Series, __version__, expectations, run
from ._qdisc import Packet, Qdisc
from ._scripts import Departures, check, diff, explain, partition, replay
from ._sweep import Sweep, sweep
from ._tables import Rows

__all__ = [
    "Chart",
    "Departures",
    "Engine",
    "Executor",
    "Experiment",
    "Machine",
    "Made",
    "Packet",
    "PenstockError",
    "Qdisc",
    "Rows",
    "Run",
    "Said",
    "Series",
    "Sweep",
    "Work",
    "__version__",
    "check",
    "diff",
    "expectations",
    "explain",
    "partition",
    "replay",
    "run",
    "sweep",
]
