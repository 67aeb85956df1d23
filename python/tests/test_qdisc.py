"""Queueing disciplines in Python."""

import numpy
import pytest

import penstock


class Limited(penstock.Qdisc):
    """pfifo."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def enqueue(self, packet, now_ns):
        return len(self.queue) < self.limit and super().enqueue(packet, now_ns)


def arrivals(n, load, seed):
    """n packets of 1000 bytes for a line of 8 Mbit/s."""
    return numpy.round(numpy.cumsum(numpy.random.default_rng(seed).exponential(1000 / load, n)), 3)


@pytest.mark.parametrize("load", [0.5, 0.95, 1.3])
def test_a_fifo_of_pythons_is_the_kernels(load):
    t_us = arrivals(2000, load, 5)
    ours = penstock.replay(Limited(20), t_us, 1000, rate="8mbit")
    kernels = penstock.replay("qdisc add dev $DEV $PARENT handle 1: pfifo limit 20", t_us, 1000, rate="8mbit")
    assert (ours.dropped == kernels.dropped).all()
    left = ~ours.dropped
    # The kernel's line is an HTB class: a nanosecond or so late with each packet of a busy period.
    late = (kernels.t_ns - ours.t_ns)[left]
    assert late.min() >= 0 and late.max() <= 2000, (late.min(), late.max())
    assert (ours.dropped.sum() > 300) == (load > 1)
    assert ours.answer == {} and not ours.marked.any()


def test_a_priority_queue():
    class Urgent(penstock.Qdisc):
        def dequeue(self, now_ns):
            first = min(self.queue, key=lambda p: (p.fields.get("dport") != 22, p.number), default=None)
            if first is not None:
                self.queue.remove(first)
            return first

    ports = [80, 80, 80, 22]
    out = penstock.replay(Urgent(), [0, 0, 0, 0], 1000, rate="8mbit", packet=[{"dport": p} for p in ports])
    assert out.t_ns.tolist() == [0, 2_000_000, 3_000_000, 1_000_000]


def test_a_shaper_is_asked_when_it_wants():
    class Slow(penstock.Qdisc):
        """A packet each 10 ms, whatever the line carries."""

        due = 0

        def dequeue(self, now_ns):
            if now_ns < self.due or not self.queue:
                return None
            self.due = now_ns + 10_000_000
            return super().dequeue(now_ns)

        def next_wakeup(self, now_ns):
            return self.due if self.queue else None

    out = penstock.replay(Slow(), [0, 0, 0, 35_000], 1000, rate="8mbit")
    assert out.t_ns.tolist() == [0, 10_000_000, 20_000_000, 35_000_000]


def test_marks_and_drops_at_the_head():
    class Marking(penstock.Qdisc):
        def dequeue(self, now_ns):
            packet = super().dequeue(now_ns)
            if packet and now_ns - packet.t_ns > 1_500_000:
                packet.marked = True
            if packet and now_ns - packet.t_ns > 2_500_000:
                return super().dequeue(now_ns)
            return packet

    out = penstock.replay(Marking(), [0, 0, 0, 0, 0], 1000, rate="8mbit")
    assert out.marked.tolist() == [False, False, True, True, False]
    assert out.dropped.tolist() == [False, False, False, True, False]


def test_what_a_qdisc_must_not_do():
    class Twice(penstock.Qdisc):
        def dequeue(self, now_ns):
            return self.queue[0] if self.queue else None

    with pytest.raises(ValueError, match="has left already"):
        penstock.replay(Twice(), [0], 1000)

    class Past(penstock.Qdisc):
        def dequeue(self, now_ns):
            return None

        def next_wakeup(self, now_ns):
            return now_ns

    with pytest.raises(ValueError, match="not later than now"):
        penstock.replay(Past(), [0], 1000)

    class Never(Past):
        def next_wakeup(self, now_ns):
            return now_ns + 1_000_000_000

    assert penstock.replay(Never(), [0], 1000).dropped.tolist() == [True]
    with pytest.raises(penstock.PenstockError, match='"fast" is not a rate; write 10mbit'):
        penstock.replay(Limited(1), [0], 1000, rate="fast")
    with pytest.raises(ValueError, match='release is "link"'):
        penstock.replay(Limited(1), [0], 1000, release="none")
