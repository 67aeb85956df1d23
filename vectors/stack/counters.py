"""Records what `nstat` shows of the machines of some experiments on the virtual ground: counters.jsonl, for crates/penstock-lab/tests/counters.rs.

    python3 vectors/stack/counters.py target/release/penstock > vectors/stack/counters.jsonl

Each line: `name`, `file` (the experiment), `counters` (by machine; those that are not 0).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

# Two machines and a line of 10 Mbit/s: what is set up on either, and what else happens.
LINE = {
    "plain": ([], [], []),
    "queue": (["tc qdisc add dev eth0 root netem limit 8 rate 5mbit"], [], []),
    "small-buffer": ([], ['sysctl -w net.ipv4.tcp_rmem="4096 8192 8192"'], []),
    "outage": (
        ["tc qdisc add dev eth0 root netem limit 30"],
        [],
        [
            ("a", "3s", "tc qdisc change dev eth0 root netem loss 100%"),
            ("a", "4s", "tc qdisc change dev eth0 root netem loss 0%"),
        ],
    ),
}

# A router between two: what the first does, and what is set up on the first, on the router and on the last.
ROUTER = {
    "fragments": (["ping -c 3 -i 0.2 -s 4000 10.0.2.2"], [], []),
    "ttl": (["ping -c 2 -i 0.2 -t 1 10.0.2.2"], [], []),
    "no-route": (["ping -c 2 -i 0.2 10.9.9.9"], [], []),
    "no-neighbour": (["ping -c 2 -i 0.2 10.0.2.77"], [], []),
    "refused": (["iperf -c 10.0.2.2 -p 7 -t 1"], [], []),
    "narrow": (["ping -c 2 -i 0.2 -s 1300 -M do 10.0.2.2"], [], ["ip link set eth1 mtu 1200"]),
    "marks": (["ping -c 2 -i 0.2 -Q 0x03 10.0.2.2", "ping -c 3 -i 0.2 -Q 0x02 10.0.2.2"], [], []),
    "six": (["ping -6 -c 3 -i 0.2 2001:db8:2::2", "ping -6 -c 2 -i 0.2 -s 4000 2001:db8:2::2"], [], []),
    "dropped": (
        ["ping -c 3 -i 0.2 10.0.2.2"],
        ["iptables -A OUTPUT -p icmp -m statistic --mode nth --every 2 --packet 0 -j DROP"],
        [],
    ),
    "reset-by-rule": (["iperf -c 10.0.2.2 -t 1"], [], ["iptables -A FORWARD -p tcp -j REJECT --reject-with tcp-reset"]),
    "refused-by-rule": (["iperf -c 10.0.2.2 -t 1"], [], ["iptables -A FORWARD -p tcp -j REJECT"]),
    "lost-syns": (["iperf -c 10.0.2.2 -t 1"], [], ["iptables -A FORWARD -p tcp -j DROP"]),
    "no-way": (
        ["ping -c 2 -i 0.2 10.0.9.1", "ping -c 2 -i 0.2 10.0.8.1", "ping -c 2 -i 0.2 10.0.7.1"],
        [],
        ["ip route add prohibit 10.0.9.0/24", "ip route add blackhole 10.0.8.0/24", "ip route add unreachable 10.0.7.0/24"],
    ),
    "host-only": (["ping -c 2 -i 0.2 10.0.2.2"], [], ["sysctl -w net.ipv4.conf.all.forwarding=0"]),
    "reverse-path": (
        ["ping -c 2 -i 0.2 10.0.2.2"],
        [],
        ["sysctl -w net.ipv4.conf.all.rp_filter=1", "ip route add 10.0.1.1/32 via 10.0.2.2"],
    ),
    "tunnel": (
        ["ping -c 3 -i 0.2 172.16.0.2", "ping -c 2 -i 0.2 -s 3000 172.16.0.2"],
        ["ip link add t0 type ipip remote 10.0.2.2 local 10.0.1.1", "ip addr add 172.16.0.1/30 dev t0", "ip link set t0 up"],
        [],
        ["ip link add t0 type ipip remote 10.0.1.1 local 10.0.2.2", "ip addr add 172.16.0.2/30 dev t0", "ip link set t0 up"],
    ),
    "itself": (["ping -c 3 -i 0.2 127.0.0.1", "ping -c 2 -i 0.2 10.0.1.1"], [], []),
}

# The same with two greedy connections from the first to the last.
FLOWS = {
    "flows": ([], [], []),
    "masquerade": ([], [], ["iptables -t nat -A POSTROUTING -o eth1 -j MASQUERADE"]),
    # What the last segment of a write waits for, and the end of the connection with it.
    "transfers": ([], [], [], [], {"arrivals": "100ms", "bytes": "12k", "shape": 1.2}),
    "narrow-flows": ([], [], ["ip link set eth1 mtu 1300"], ["ip link set eth0 mtu 1300"]),
}


def words(lines):
    return "[" + ", ".join(json.dumps(line) for line in lines) + "]"


def app(host, at, run, may_fail=False):
    return f'[[app]]\non = "{host}"\nat = "{at}"\nrun = {json.dumps(run)}\n' + ("may_fail = true\n" if may_fail else "")


def line(setup_a, setup_b, others):
    text = f'duration = "9s"\n[host.a]\neth0 = "10.0.0.1/24"\nsetup = {words(setup_a)}\n'
    text += f'[host.b]\neth0 = "10.0.0.2/24"\nsetup = {words(setup_b)}\n'
    text += '[[link]]\nends = ["a:eth0", "b:eth0"]\nrate = "10mbit"\ndelay = "10ms"\n'
    text += '[[flow]]\nfrom = "a"\nto = "b"\ncount = 2\nload = "greedy"\nat = "1s"\nuntil = "6s"\n'
    text += "".join(app(*other) for other in others)
    return text + "".join(app(host, "8s", "nstat -as") for host in "ab"), "ab"


def table(load):
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in load.items()) + " }"


def router(runs, setup_a, setup_r, setup_b=(), load=None):
    text = 'duration = "6s"\n'
    text += '[host.a]\neth0 = ["10.0.1.1/24", "2001:db8:1::1/64"]\nvia = ["10.0.1.254", "2001:db8:1::fe"]\n'
    text += f"setup = {words(setup_a)}\n"
    text += '[host.r]\neth0 = ["10.0.1.254/24", "2001:db8:1::fe/64"]\neth1 = ["10.0.2.254/24", "2001:db8:2::fe/64"]\n'
    forwards = [] if any("forwarding=0" in row for row in setup_r) else ["sysctl -w net.ipv4.ip_forward=1"]
    text += f"setup = {words(forwards + ['sysctl -w net.ipv6.conf.all.forwarding=1'] + setup_r)}\n"
    text += '[host.b]\neth0 = ["10.0.2.2/24", "2001:db8:2::2/64"]\nvia = ["10.0.2.254", "2001:db8:2::fe"]\n'
    text += f"setup = {words(list(setup_b))}\n"
    for ends in ('"a:eth0", "r:eth0"', '"r:eth1", "b:eth0"'):
        text += f'[[link]]\nends = [{ends}]\nrate = "10mbit"\ndelay = "3ms"\n'
    if load == "greedy":
        text += '[[flow]]\nfrom = "a"\nto = "b"\ncount = 2\nload = "greedy"\nat = "1s"\nuntil = "4s"\n'
    elif load:
        text += f'[[flow]]\nfrom = "a"\nto = "b"\nload = {table(load)}\nat = "1s"\nuntil = "3s"\n'
    text += "".join(app("a", f"{at + 1}s", run, True) for at, run in enumerate(runs))
    return text + "".join(app(host, "5500ms", "nstat -as") for host in "arb"), "arb"


def counters(text):
    rows = [row.split() for row in text.splitlines() if not row.startswith("#")]
    return {row[0]: int(row[1]) for row in rows}


def main(penstock):
    experiments = {name: line(*case) for name, case in LINE.items()}
    experiments |= {name: router(*case) for name, case in ROUTER.items()}
    experiments |= {name: router(*case[:4], load=(*case, *[None] * 4)[4] or "greedy") for name, case in FLOWS.items()}
    for name, (text, hosts) in experiments.items():
        with tempfile.TemporaryDirectory() as folder:
            file, out = pathlib.Path(folder, "x.toml"), pathlib.Path(folder, "out")
            file.write_text(text)
            ran = subprocess.run([penstock, "run", file, "--on", "virtual", "--out", out], capture_output=True, text=True)
            apps = sorted((out / "apps").glob("*.txt"))[-len(hosts) :]
            if not apps:
                sys.exit(f"{name}: {ran.stdout}{ran.stderr}")
            shown = {host: counters(path.read_text()) for host, path in zip(hosts, apps)}
        print(json.dumps({"name": name, "file": text, "counters": shown}))


main(sys.argv[1])
