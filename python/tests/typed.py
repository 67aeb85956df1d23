"""Read by mypy --strict and pyright, not run: how the module is used with types."""

from concurrent.futures import ProcessPoolExecutor
from typing import Iterator

import penstock

run: penstock.Run = penstock.run("line.toml", seed=1)
share: float | None = run.figure("call loss")
figures: dict[str, float] = run.figures
series: penstock.Series = run.series
picture: penstock.Chart = run.chart("owd_ms", object="call")
e: penstock.Experiment = penstock.Experiment("x", duration="1s").host("a", eth0="10.0.0.1/24")
text: str = e.toml()
rows: penstock.Rows = penstock.check("tc qdisc show", dev="eth0", rate="1mbit")
first: str = rows[0]["message"]
said: str = penstock.Machine()("tc qdisc show")
out: penstock.Departures = penstock.replay([], [0.0], 100)
results: penstock.Sweep = penstock.sweep(e, {"link.up.rate": ["1mbit", "2mbit"]}, seeds=20)
with ProcessPoolExecutor() as pool:
    results = penstock.sweep("line.toml", engine=pool)


class Here:
    workers = 1

    def __init__(self) -> None:
        self.waiting: list[penstock.Work] = []

    def submit(self, work: penstock.Work) -> None:
        self.waiting.append(work)

    def results(self) -> Iterator[tuple[penstock.Work, penstock.Made]]:
        while self.waiting:
            work = self.waiting.pop()
            yield work, work()

    def cancel(self) -> None:
        self.waiting.clear()


own: penstock.Executor = Here()
results = penstock.sweep(e, seeds=2, engine=own)
results = penstock.sweep(e, seeds=2, engine="ray", jobs=2)
differences: penstock.Rows = penstock.diff("", "", dev="eth0")


class Short(penstock.Qdisc):
    def enqueue(self, packet: penstock.Packet, now_ns: int) -> bool:
        return len(self.queue) < 2 and super().enqueue(packet, now_ns)


out = penstock.replay(Short(), [0.0], 100)
