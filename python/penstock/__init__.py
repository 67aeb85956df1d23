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

from ._penstock import PenstockError, Run, __version__, check, run

__all__ = ["PenstockError", "Run", "__version__", "check", "run"]
