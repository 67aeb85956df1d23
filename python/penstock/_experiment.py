"""An experiment built by calls, and the TOML it stands for."""

from __future__ import annotations

import re
from typing import Any, Mapping, Sequence

from ._penstock import Run, run

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def _key(name: str) -> str:
    return name if _BARE.match(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        out = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in out) + '"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    raise TypeError(f"{value!r} cannot be written as TOML: take a text, a number, a list or a dict")


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]


class Experiment:
    """An experiment: machines, links, programs, flows, expectations. Quantities are written as tc writes them: "10mbit", "15k", "50ms". Each call returns the
    experiment, so calls can follow one another; `toml()` is the file it stands for. Further keys of the experiment file are taken as they are.

    >>> e = Experiment("A line", duration="2s", seed=7)
    >>> e = e.host("a", eth0="10.0.0.1/24", setup="tc qdisc add dev eth0 root fq_codel")
    >>> e = e.host("b", eth0="10.0.0.2/24")
    >>> e = e.link("a:eth0", "b:eth0", rate="10mbit", delay="5ms")
    >>> e = e.flow("backup", "a", "b", load="greedy")
    >>> e = e.expect("backup goodput", ">8mbit")
    >>> print(e.toml(), end="")
    title = "A line"
    duration = "2s"
    seed = 7
    <BLANKLINE>
    [host.a]
    eth0 = "10.0.0.1/24"
    setup = "tc qdisc add dev eth0 root fq_codel"
    <BLANKLINE>
    [host.b]
    eth0 = "10.0.0.2/24"
    <BLANKLINE>
    [[link]]
    ends = ["a:eth0", "b:eth0"]
    rate = "10mbit"
    delay = "5ms"
    <BLANKLINE>
    [[flow]]
    name = "backup"
    from = "a"
    to = "b"
    load = "greedy"
    <BLANKLINE>
    [[expect]]
    what = "backup goodput"
    value = ">8mbit"
    >>> e.run().succeeded
    True
    """

    def __init__(self, title: str | None = None, *, duration: str, seed: int | None = None, **keys: Any) -> None:
        self._top: dict[str, Any] = {"title": title, "duration": duration, "seed": seed, **keys}
        self._hosts: dict[str, dict[str, Any]] = {}
        self._lists: list[tuple[str, dict[str, Any]]] = []

    def host(
        self,
        name: str,
        *,
        via: str | Sequence[str] | None = None,
        setup: str | Sequence[str] | None = None,
        kernel: str | None = None,
        env: Mapping[str, Any] | None = None,
        **devices: Any,
    ) -> Experiment:
        """A machine. `devices`: addresses by the device's name, `eth0="10.0.0.1/24"`; `via`: its router; `setup`: the commands one would type on it; `env`: variables of the
        setup; `kernel`: "6.12", "2.6.35", …"""
        if name in self._hosts:
            raise ValueError(f"there is a host {name!r} already")
        keys = {"kernel": kernel, "via": via, "env": env, "setup": setup}
        self._hosts[name] = {**devices, **{k: v for k, v in keys.items() if v is not None}}
        return self

    def link(
        self,
        first: str | Mapping[str, Any],
        second: str | Mapping[str, Any],
        *,
        name: str | None = None,
        rate: str | None = None,
        delay: str | None = None,
        loss: str | None = None,
        **keys: Any,
    ) -> Experiment:
        """A cable between two devices, "a:eth0" and "b:eth0". `rate`: bit/s as tc writes it; `delay`: one way; `loss`: a share, "0.1%"."""
        ends = [first, second]
        return self._add("link", {"name": name, "ends": ends, "rate": rate, "delay": delay, "loss": loss, **keys})

    def app(self, on: str, run: str, *, at: str | None = None, name: str | None = None, **keys: Any) -> Experiment:
        """A program on a machine: "iperf -c 10.0.0.2 -t 10", from the moment `at` on, "1s"; a line of shell, or "@file" beside the experiment."""
        return self._add("app", {"name": name, "on": on, "run": run, "at": at, **keys})

    def flow(
        self,
        name: str,
        source: str,
        to: str,
        *,
        load: Any,
        udp: bool | None = None,
        tcp: bool | Mapping[str, Any] | None = None,
        count: int | None = None,
        at: str | Mapping[str, Any] | None = None,
        until: str | None = None,
        dscp: str | int | None = None,
        port: int | None = None,
        group: str | None = None,
        **keys: Any,
    ) -> Experiment:
        """Traffic from a machine to another. `load`: "greedy", a rate, "g711", or a dict: `{"size": 200, "gap": "20ms"}`, `{"bytes": "10m"}`. TCP, with options as
        `tcp={"cc": "bbr", "ecn": True}`, or datagrams with `udp=True`. `count`: so many alike, 1 to 50000; `at`, `until`: when it begins and ends; `dscp`: "EF" or 0 to 63; `port`: 1 to
        65535; `group`: flows that are counted together."""
        keys = {"udp": udp, "tcp": tcp, "load": load, "count": count, "at": at, "until": until, "dscp": dscp, **keys}
        return self._add("flow", {"name": name, "from": source, "to": to, **keys, "port": port, "group": group})

    def expect(self, what: str, value: str) -> Experiment:
        """What must hold: a figure, "call owd p99", and its value: "<20ms", "5mbit..6mbit", ">=1"."""
        return self._add("expect", {"what": what, "value": value})

    def table(self, name: str, **keys: Any) -> Experiment:
        """Another table of the experiment file, e.g. `table("meter", …)` for `[[meter]]`."""
        return self._add(name, keys)

    def _add(self, name: str, table: dict[str, Any]) -> Experiment:
        self._lists.append((name, table))
        return self

    def toml(self) -> str:
        """The experiment file."""
        parts = [_lines(self._top)]
        parts += [[f"[host.{_key(name)}]", *_lines(keys)] for name, keys in self._hosts.items()]
        parts += [[f"[[{_key(name)}]]", *_lines(keys)] for name, keys in self._lists]
        return "\n\n".join("\n".join(part) for part in parts) + "\n"

    def run(self, *, seed: int | None = None, on: str = "sim") -> Run:
        """Runs it: `penstock.run(self)`."""
        return run(self, seed=seed, on=on)

    def __repr__(self) -> str:
        return self.toml()
