"""The virtual machine as an object."""

from __future__ import annotations

from ._penstock import PenstockError, Prompt


class Machine:
    """A virtual Linux machine with `eth0` and `eth1`: a shell, tc, ip, iptables. Nothing outside is touched. It belongs to the thread that made it.

    >>> m = Machine()
    >>> m("tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 5k latency 50ms")
    ''
    >>> m("tc qdisc show dev eth0").strip()
    'qdisc tbf 1: root refcnt 2 rate 1Mbit burst 5Kb lat 50ms'
    >>> m.call("tc qdisc del dev eth1 root").status
    2
    """

    def __init__(self) -> None:
        self._prompt = Prompt()

    def call(self, line: str) -> Said:
        """Runs a line of shell, whatever its exit status is."""
        stdout, stderr, status, _ = self._prompt.line(line)
        return Said(stdout, stderr, status)

    def __call__(self, line: str) -> str:
        """Runs a line of shell and returns what it prints. A status other than 0 is a PenstockError with what the command said."""
        said = self.call(line)
        if said.status != 0:
            why = said.stderr.strip() or f"exit status {said.status}"
            error = PenstockError(f"{line}: {why}")
            error.faults = [{"file": "", "line": 0, "column": 0, "message": why, "help": ""}]
            raise error
        return said.stdout

    def show(self) -> str:
        """The qdiscs and classes of all devices with their counters, as tc prints them."""
        return self("tc -s qdisc show; for d in eth0 eth1; do tc -s class show dev $d; done")


class Said:
    """What a command said: `stdout`, `stderr`, and its exit `status`."""

    def __init__(self, stdout: str, stderr: str, status: int) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.status = status

    def __repr__(self) -> str:
        return f"Said(status={self.status}, stdout={self.stdout!r}, stderr={self.stderr!r})"
