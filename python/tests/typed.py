"""Read by mypy --strict, not run: how the module is used with types."""

import penstock

run: penstock.Run = penstock.run("line.toml", seed=1)
share: float | None = run.figure("call loss")
figures: dict[str, float] = run.figures
e: penstock.Experiment = penstock.Experiment("x", duration="1s").host("a", eth0="10.0.0.1/24")
text: str = e.toml()
rows: penstock.Rows = penstock.check("tc qdisc show", dev="eth0", rate="1mbit")
first: str = rows[0]["message"]
said: str = penstock.Machine()("tc qdisc show")
out: penstock.Departures = penstock.replay([], [0.0], 100)
