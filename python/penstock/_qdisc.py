"""Queueing disciplines in Python, for a lecture: a class whose packets `replay` sends through a line."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

# How long the last packets are waited for, as after the last packet of tc's own, in ns.
_DRAIN_NS = 60_000_000_000


@dataclass
class Packet:
    """A packet on its way through a qdisc of Python's."""

    number: int
    """Its place among all packets, from 0."""
    t_ns: int
    """When it came, in ns."""
    length: int
    """Bytes of the frame."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What else it has: `sport`, `dport`, `tos`, `mark`, …"""
    marked: bool = False
    """Congestion experienced: a qdisc sets it."""


class Qdisc:
    """A qdisc in Python. Its methods are those of the kernel's: `enqueue` takes a packet or drops it, `dequeue` gives one or none. This one is a queue without a limit.

    Times are whole numbers of ns. A qdisc that holds packets back says by `next_wakeup` when it is to be asked again. It is for thousands of packets, not for
    millions: each call is Python's.

    >>> from penstock import replay
    >>> class Short(Qdisc):
    ...     def enqueue(self, packet, now_ns):
    ...         return len(self.queue) < 2 and super().enqueue(packet, now_ns)
    >>> replay(Short(), [0, 0, 0, 0], 1000, rate="8mbit").t_ns.tolist()
    [0, 1000000, 2000000, -1]
    """

    def __init__(self) -> None:
        self.queue: deque[Packet] = deque()

    def enqueue(self, packet: Packet, now_ns: int) -> bool:
        """Takes a packet that comes now; False where it is dropped."""
        self.queue.append(packet)
        return True

    def dequeue(self, now_ns: int) -> Packet | None:
        """Gives the packet that leaves now, or none. What it takes out and does not give is dropped."""
        return self.queue.popleft() if self.queue else None

    def next_wakeup(self, now_ns: int) -> int | None:
        """When it is to be asked again after it gave none, in ns, later than now; None: when a packet comes."""
        return None


def _through(
    qdisc: Qdisc, packets: Sequence[Packet], bit_s: int
) -> tuple[list[int], list[bool]]:
    """Sends packets through a qdisc and a line: when each left (-1: it did not), and which were marked."""
    left = [-1] * len(packets)
    order = sorted(range(len(packets)), key=lambda i: packets[i].t_ns)
    nowhere = 1 << 62
    end = (packets[order[-1]].t_ns if order else 0) + _DRAIN_NS
    free, ask, n = 0, nowhere, 0
    while True:
        arrival = packets[order[n]].t_ns if n < len(order) else nowhere
        now = min(arrival, ask)
        if now == nowhere or now > end:
            return left, [p.marked for p in packets]
        # What comes at the moment when the line is free has come when it is asked.
        if arrival <= ask:
            qdisc.enqueue(packets[order[n]], now)
            n += 1
            ask = min(ask, max(now, free))
            if ask > now:
                continue
        ask = nowhere
        packet = qdisc.dequeue(now)
        if packet is None:
            wake = qdisc.next_wakeup(now)
            if wake is not None and wake <= now:
                raise ValueError(f"next_wakeup is {wake} ns, not later than now, {now} ns")
            ask = nowhere if wake is None else max(wake, free)
            continue
        if packet.number not in range(len(packets)) or packets[packet.number] is not packet or left[packet.number] >= 0:
            raise ValueError(f"dequeue gave {packet!r}, which is not one that came, or one that has left already")
        left[packet.number] = now
        free = now - (-packet.length * 8 * 1_000_000_000 // bit_s)
        ask = free

