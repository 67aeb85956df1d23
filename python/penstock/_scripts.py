"""What shaping scripts do: check, explain, partition, diff, and replay of exact packets."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import Any, Mapping, Sequence, overload

from ._penstock import PenstockError, ask, bytes_per_s
from ._qdisc import Packet, Qdisc, _through
from ._tables import Rows
from ._traffic import difference, ranges


def _asked(question: dict[str, Any]) -> Any:
    return ask(json.dumps({key: value for key, value in question.items() if value is not None}))


def check(script: str, *, dev: str | None = None, rate: str | None = None, name: str = "script") -> Rows:
    """Checks a shaping script: a row for each finding, with the fields of `penstock check --json`. `rate` is that of the link of `dev`, as tc writes it: "10mbit".

    >>> found = check("tc qdisc add dev eth0 root tbf rate 1mbit\\n")
    >>> found[0]["line"], found[0]["code"]
    (1, 'PS001')
    >>> check("tc qdisc add dev eth0 root fq_codel\\n")
    []
    """
    answer = _asked({"ask": "check", "text": script, "dev": dev, "rate": rate, "name": name})
    return Rows(answer["findings"])


@overload
def explain(
    script: str, packet: str, *, dev: str, rate: str | None = None, name: str = "script"
) -> dict[str, Any]: ...
@overload
def explain(
    script: str, packet: list[str] | tuple[str, ...], *, dev: str, rate: str | None = None, name: str = "script"
) -> Rows: ...
def explain(
    script: str, packet: str | list[str] | tuple[str, ...], *, dev: str, rate: str | None = None, name: str = "script"
) -> dict[str, Any] | Rows:
    """Where a packet goes and why: `class`, `queue`, `filters`, `netfilter`, `promise`, and all of it as `text`. Of a list of packets a row each: `packet`, `class`, `by`, `mark`,
    `dropped`, `queue`.

    Raises PenstockError for a packet that cannot be read or a device that is not there.

    >>> script = '''tc qdisc add dev eth0 root handle 1: htb default 20
    ... tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
    ... tc class add dev eth0 parent 1: classid 1:20 htb rate 2mbit
    ... tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
    ... '''
    >>> explain(script, "tcp 10.0.0.1:40000 > 10.0.0.2:22", dev="eth0")["class"]
    '1:10'
    >>> rows = explain(script, ["tcp 10.0.0.1:40000 > 10.0.0.2:22", "udp 10.0.0.1:40000 > 10.0.0.2:53"], dev="eth0")
    >>> [row["class"] for row in rows]
    ['1:10', '1:20']
    """
    question = {"ask": "explain", "text": script, "dev": dev, "rate": rate, "name": name}
    if isinstance(packet, str):
        one: dict[str, Any] = _asked({**question, "packet": packet})
        return one
    rows = Rows()
    for each in packet:
        said = _asked({**question, "packet": each})
        queue = said["queue"]["kind"] if said.get("queue") else None
        rows.append({"packet": each, **{key: said[key] for key in ("class", "by", "mark", "dropped")}, "queue": queue})
    return rows


def partition(script: str, *, dev: str, rate: str | None = None, name: str = "script") -> Rows:
    """Which packets reach which class: a row for each part of all packets, with `packets` (its condition), the condition as `ranges` of fields (both ends included) and `other`
    words, `to` (its class), `line`, `reached` and an `example`.

    >>> script = '''tc qdisc add dev eth0 root handle 1: prio
    ... tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:1
    ... '''
    >>> first = partition(script, dev="eth0")[0]
    >>> first["to"], first["ranges"]["dport"]
    ('1:1', [(22, 22)])
    """
    rows = Rows()
    for part in _asked({"ask": "partition", "text": script, "dev": dev, "rate": rate, "name": name})["parts"]:
        fields, other = ranges(part["packets"])
        rows.append({**part, "ranges": fields, "other": other})
    return rows


def diff(before: str, after: str, *, dev: str, name: str = "script") -> Rows:
    """What two scripts do differently: a row for each difference; none where there is none.

    Each has its `device`, its `hook` ("leaving" or "arriving"), and what is different: the `object` (`class 1:10`, `root`, `filter at 1: prio 3`, `device`, `command`) or the `traffic`,
    with the traffic as `ranges` of its fields (both ends included) and `other` words that are no ranges; `before` and `after`; an `example` packet of it. `exact` is False where a set
    only holds the packets that are concerned, or where it was not decided whether there are any. `text` is the line that `penstock diff` prints.

    >>> old = '''tc qdisc add dev eth0 root handle 1: htb default 20
    ... tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
    ... tc class add dev eth0 parent 1: classid 1:20 htb rate 2mbit
    ... tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
    ... '''
    >>> len(diff(old, old, dev="eth0"))
    0
    >>> rows = diff(old, old.replace("22 0xffff", "22 0xfffe").replace("2mbit", "3mbit"), dev="eth0")
    >>> [(row["ranges"]["dport"], row["before"], row["after"]) for row in rows if row["traffic"]]
    [([(23, 23)], '1:20', '1:10')]
    >>> [(row["object"], row["before"], row["after"]) for row in rows if "ceil" in row["text"]]
    [('class 1:20', 'rate 2mbit ceil 2mbit', 'rate 3mbit ceil 3mbit')]
    """
    lines = _asked({"ask": "diff", "text": before, "after": after, "dev": dev, "name": name})["lines"]
    return Rows(difference(line, dev) for line in lines)


@dataclass(frozen=True)
class Departures:
    """What became of exact packets, in the order they were given in: arrays of NumPy of that length where it is installed, else lists."""

    t_ns: Any
    """When each left, in ns from the moment 0; -1 where it did not. int64."""
    delay_ns: Any
    """How long each waited, in ns; -1 where it did not leave. int64."""
    dropped: Any
    """Whether each did not leave. bool."""
    marked: Any
    """Whether a qdisc of Python's marked it; None where tc's words set the device up. bool."""
    answer: dict[str, Any]
    """The whole answer, as of `penstock replay SPEC.json`: drops, qdiscs and classes as `tc -s -j` shows them. Empty for a qdisc of Python's."""


def replay(
    setup: str | Sequence[str] | Qdisc,
    t_us: Sequence[float] | Any,
    length: int | Sequence[int] | Any,
    *,
    rate: str = "1mbit",
    release: str = "link",
    packet: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> Departures:
    """Exact packets through a configured device; the answer is the kernel's to the nanosecond.

    `setup`: lines of tc for the device `$DEV` below `$PARENT`, or a `Qdisc` of Python's, which is used up by it. `t_us`: when packets come, in µs, an array of shape (n,).
    `length`: bytes of each frame with its 14 bytes of Ethernet header, one number or an array of shape (n,). `rate`: of the line behind the device, as tc writes it.
    `release`: "link" (the default), "block", "none" or "arrive", as in a specification of `penstock replay`; a qdisc of Python's has "link" alone. `packet`: further fields of all
    packets, or of each: `proto`, `src`, `dst`, `sport`, `dport`, `tos`, `mark`, `priority`.

    Raises PenstockError for commands that tc or the kernel refuse and fields that are wrong, ValueError for arrays of other shapes.

    >>> out = replay("qdisc add dev $DEV $PARENT handle 1: pfifo limit 2", [0, 0, 0, 0], 1000, rate="10mbit")
    >>> [bool(x) for x in out.dropped]
    [False, False, False, True]
    >>> [round(int(x) / 1e6, 1) for x in out.t_ns[:3]]  # ms
    [0.0, 0.8, 1.6]
    """
    times = [float(t) for t in t_us]
    lengths = [int(length)] * len(times) if isinstance(length, int) else [int(x) for x in length]
    fields = [packet or {}] * len(times) if packet is None or isinstance(packet, Mapping) else list(packet)
    for name, other in (("length", lengths), ("packet", fields)):
        if len(other) != len(times):
            raise ValueError(f"{name} has {len(other)} entries and t_us has {len(times)}")
    marked: list[bool] | None = None
    answer: dict[str, Any] = {}
    if isinstance(setup, Qdisc):
        if release != "link":
            raise ValueError(f'release is "link" for a qdisc of Python\'s, not "{release}"')
        rows = zip(times, lengths, fields)
        packets = [Packet(i, round(t * 1000), n, dict(f)) for i, (t, n, f) in enumerate(rows)]
        left, marked = _through(setup, packets, bytes_per_s(rate) * 8)
    else:
        lines = setup.splitlines() if isinstance(setup, str) else list(setup)
        given = [{**dict(f), "t_us": t, "len": n} for t, n, f in zip(times, lengths, fields)]
        spec = {"release": release, "rate": rate, "setup": lines, "packets": given}
        answer = _asked({"ask": "replay", "spec": spec})
        left = [-1] * len(times)
        for departure in answer["departures"]:
            left[departure["i"]] = departure["t_ns"]
    waited = [t if t < 0 else t - round(came * 1000) for t, came in zip(left, times)]
    dropped = [t < 0 for t in left]
    try:
        numpy: Any = importlib.import_module("numpy")
    except ImportError:
        return Departures(left, waited, dropped, marked, answer)
    ints = [numpy.array(of, dtype=numpy.int64) for of in (left, waited)]
    bools = [None if of is None else numpy.array(of, dtype=numpy.bool_) for of in (dropped, marked)]
    return Departures(ints[0], ints[1], bools[0], bools[1], answer)


__all__ = ["Departures", "PenstockError", "check", "diff", "explain", "partition", "replay"]
