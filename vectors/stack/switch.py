#!/usr/bin/env python3
"""Records what a real machine with a bridge that filters VLANs, with macvlans or with rules on bridged frames does to frames.

    switch.py KIND FIRST COUNT OUT.jsonl

KIND is vlans, macvlans or rules. One line for each seed: the wires, the commands, the frames that are put on the wires (addresses, tags, packet), what came out
of the machine by them after each, and at the end what each device and qdisc has counted and what `bridge` shows. Run it inside a kernel of one's own
(`run-in-kernel --engine uml`), with the modules bridge, br_netfilter, macvlan and 8021q. Nothing outside the network namespaces it makes is touched. It shares
its machine with spaces.py and its packets with record.py.
"""
import importlib.util
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

spec = importlib.util.spec_from_file_location("spaces", os.path.join(os.path.dirname(os.path.abspath(__file__)), "spaces.py"))
spaces = importlib.util.module_from_spec(spec)
sys.argv, argv = [sys.argv[0], "0", "0", "/dev/null"], sys.argv
spec.loader.exec_module(spaces)
sh, read, ip_packet = spaces.sh, spaces.read, spaces.ip_packet
ALL = "ff:ff:ff:ff:ff:ff"
BRIDGE = "02:00:00:00:00:b0"
CONTAINER = "02:00:00:00:00:c1"
SOL_PACKET, PACKET_AUXDATA = 263, 8


def station(i):
    """The hardware address of who is at wire i."""
    return f"02:00:00:00:01:{i:02x}"


def raw(text):
    return bytes.fromhex(text.replace(":", ""))


class Machine(spaces.Machine):
    def __init__(self, commands):
        super().__init__(commands, False)
        for s in self.sockets.values():
            s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)

    def put(self, dev, frame, p):
        tags = b"".join(struct.pack("!HH", *tag) for tag in frame["tags"])
        self.sockets[dev].send(raw(frame["to"]) + raw(frame["from"]) + tags + b"\x08\x00" + ip_packet(p))

    def collect(self):
        time.sleep(0.08)
        seen = []
        for dev in spaces.WIRES:
            while True:
                try:
                    frame, more, _, where = self.sockets[dev].recvmsg(65536, 256)
                except BlockingIOError:
                    break
                if where[2] == socket.PACKET_OUTGOING:
                    continue
                tags = []
                for level, kind, data in more:
                    if level == SOL_PACKET and kind == PACKET_AUXDATA:
                        status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
                        if status & 0x10:
                            tags.append([tpid if status & 0x40 else 0x8100, tci])
                while frame[12:14] in (b"\x81\x00", b"\x88\xa8"):
                    tags.append(list(struct.unpack("!HH", frame[12:16])))
                    frame = frame[:12] + frame[16:]
                p = read(frame)
                if p:
                    macs = [":".join(f"{b:02x}" for b in frame[at:at + 6]) for at in (6, 0)]
                    seen.append([dev, {"from": macs[0], "to": macs[1], "tags": tags}, p])
        return seen

    def shown(self, commands):
        """What `bridge` shows, without addresses of groups."""
        def lines(command):
            text = sh(f"ip netns exec r {command}", check=False)
            return [line.rstrip() for line in text.rstrip().split("\n") if not line.startswith(("33:33", "01:00:5e", "01:80:c2"))]
        return [[command, lines(command)] for command in commands]


def neighbours(at, dev, of):
    return [f"{at} neigh add {ip} lladdr {mac} nud permanent dev {dev}" for ip, mac in of]


def vlans(r):
    """A bridge of two to four ports, each in VLANs of its own; one may lead to a namespace. The machine routes between those that it is in itself."""
    wires = [f"lan{i}" for i in range(r.choice([2, 3, 3]))]
    protocol = r.choice([0x8100, 0x8100, 0x8100, 0x8100, 0x88a8])
    words = r.choice(["vlan_filtering 1", "vlan_filtering 1", "vlan_filtering 1", "vlan_filtering 0"])
    words += r.choice(["", "", "", " vlan_default_pvid 5", " vlan_default_pvid 0"])
    if protocol != 0x8100:
        words += " vlan_protocol 802.1ad"
    c = ["sysctl -qw net.ipv4.ip_forward=1", f"ip link add sw0 address {BRIDGE} type bridge mcast_snooping 0 {words}"]
    ports = list(wires)
    container = r.random() < 0.5
    if container:
        c += ["ip netns add c1", f"ip link add v1 type veth peer name eth0 address {CONTAINER} netns c1", "ip link set v1 up", "ip -n c1 link set lo up", "ip -n c1 link set eth0 up"]
        ports.append("v1")
    for i, dev in enumerate(ports):
        c += [f"ip link set {dev} address 02:00:00:00:00:1{i}", f"ip link set {dev} master sw0"]
    c += ["ip link set sw0 up", "ip addr add 10.0.0.1/24 dev sw0"]
    vids = [1, 5, 10, 20, 30]
    for dev in ports:
        for vid in r.sample(vids, r.choice([0, 1, 2, 3])):
            c.append(f"bridge vlan add dev {dev} vid {vid}" + r.choice(["", "", "", " untagged", " pvid", " pvid untagged", " pvid untagged"]))
        c += r.choice([[], [], [], [f"bridge vlan del dev {dev} vid 1"], [f"bridge vlan add dev {dev} vid 18-22"]])
        c += r.choice([[]] * 6 + [[f"bridge link set dev {dev} learning off"], [f"bridge link set dev {dev} hairpin on"], [f"bridge link set dev {dev} flood off"]])
    for vid in r.sample(vids, r.choice([0, 1, 2, 3])):
        c.append(f"bridge vlan add dev sw0 vid {vid} self" + r.choice(["", "", "", " untagged", " pvid untagged"]))
    tops = r.sample([10, 20, 30], r.choice([0, 1, 2]))
    nets = [(0, "sw0")] + [(v, f"sw0.{v}") for v in tops]
    for v, dev in nets[1:]:
        c += [f"ip link add link sw0 name {dev} type vlan id {v}" + (" protocol 802.1ad" if protocol != 0x8100 else ""), f"ip link set {dev} up", f"ip addr add 10.{v}.0.1/24 dev {dev}"]
    for v, dev in nets:
        c += neighbours("ip", dev, [(f"10.{v}.0.{10 + i}", station(i)) for i in range(len(wires))] + [(f"10.{v}.0.99", CONTAINER)])
    if container:
        at = r.choice([0, 0, 10, 20])
        dev = "eth0"
        if at and r.random() < 0.7:
            dev = f"eth0.{at}"
            c += [f"ip -n c1 link add link eth0 name {dev} type vlan id {at}" + (" protocol 802.1ad" if protocol != 0x8100 else ""), f"ip -n c1 link set {dev} up"]
        c += [f"ip -n c1 addr add 10.{at}.0.99/24 dev {dev}"] + neighbours("ip -n c1", dev, [(f"10.{at}.0.{10 + i}", station(i)) for i in range(len(wires))] + [(f"10.{at}.0.1", BRIDGE)])
        c += [f"ip -n c1 route add default via 10.{at}.0.1 dev {dev}"]
    does = r.sample([
        "ip link set sw0 type bridge vlan_filtering 0", "ip link set sw0 type bridge vlan_filtering 1", f"bridge vlan del dev {r.choice(ports)} vid 10", "bridge vlan del dev sw0 vid 1 self",
        f"bridge vlan add dev {r.choice(ports)} vid 10 pvid untagged", f"bridge fdb add {station(1)} dev lan0 master static", f"bridge fdb replace {station(0)} dev lan1 master dynamic",
        "ip link set sw0 type bridge vlan_default_pvid 20", f"ip link set {ports[-1]} nomaster", "ip link set sw0 type bridge fdb_flush", "ip link set lan1 address 02:00:00:00:00:77",
    ], r.choice([0, 1, 1, 2]))
    pool = vids + [0, 0, 2, 19]

    def frame(n):
        i = r.randrange(len(wires))
        tags = r.choice([[], [], [0x8100], [0x8100], [0x8100], [protocol], [0x88a8], [0x88a8, 0x8100], [0x8100, 0x8100]])
        tags = [[tpid, r.choice(pool) | r.choice([0, 0, 0, 3, 7]) << 13] for tpid in tags]
        v = r.choice([0] + tops + [10])
        to, dst = r.choice([(BRIDGE, f"10.{v}.0.1"), (BRIDGE, f"10.{r.choice([0, 10, 20])}.0.{10 + r.randrange(len(wires))}"), (ALL, "10.0.0.255"), (CONTAINER, f"10.{v}.0.99"),
                            (station(r.randrange(len(wires))), f"10.{v}.0.77"), (station(r.randrange(len(wires))), f"10.{v}.0.77"), ("02:00:00:00:09:09", "10.0.0.9"), ("01:80:c2:00:00:0e", "10.0.0.9"), ("02:00:00:00:00:11", "10.0.0.1")])
        src = (tags[0][1] & 4095 if tags else v)
        return wires[i], {"from": station(i), "to": to, "tags": tags}, f"10.{src if src in (0, 10, 20, 30) else v}.0.{10 + i}", dst

    return wires, c, frame, does, ["bridge vlan show", "bridge fdb show br sw0", "bridge link show"], ports


def macvlans(r):
    """One to three macvlans over a card, a VLAN or a bridge, here or in namespaces, which forward."""
    wires = ["lan0", "lan1"]
    c = ["sysctl -qw net.ipv4.ip_forward=1", "ip link set lan0 address 02:00:00:00:00:10", "ip link set lan1 address 02:00:00:00:00:11"]
    over = r.choice(["lan0", "lan0", "lan0", "lan0.7", "sw0"])
    tags = []
    if over == "lan0.7":
        c += ["ip link add link lan0 name lan0.7 type vlan id 7", "ip link set lan0.7 up"]
        tags = [[0x8100, 7]]
    elif over == "sw0":
        c += [f"ip link add sw0 address {BRIDGE} type bridge mcast_snooping 0", "ip link set lan0 master sw0", "ip link set sw0 up"]
    own = BRIDGE if over == "sw0" else "02:00:00:00:00:10"
    n = r.choice([1, 2, 2, 3, 3])
    modes = [r.choice(["bridge", "bridge", "bridge", "private", "vepa"]) for _ in range(n)]
    if r.random() < 0.5:
        modes = [modes[0]] * n
    if n == 1 and r.random() < 0.5:
        modes = ["passthru"]
    macs = [f"02:00:00:00:00:5{i}" for i in range(n)]
    if modes == ["passthru"]:
        macs = [own]
    at = {f"10.0.0.5{i}": macs[i] for i in range(n)} | {"10.0.0.10": station(0), "10.0.0.11": station(1), "10.0.0.1": own}
    c += [f"ip addr add 10.0.0.1/24 dev {over}", "ip addr add 10.1.0.1/24 dev lan1"] + neighbours("ip", over, [(ip, mac) for ip, mac in at.items() if ip != "10.0.0.1"]) + neighbours("ip", "lan1", [("10.1.0.12", station(2))])
    for i in range(n):
        space = r.choice([None, f"c{i}", f"c{i}"]) if modes != ["passthru"] else f"c{i}"
        here = f"ip -n {space}" if space else "ip"
        mac = "" if modes == ["passthru"] else f"address {macs[i]} "
        if space:
            c += [f"ip netns add {space}", f"ip netns exec {space} sysctl -qw net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.default.send_redirects=0 net.ipv4.icmp_ratelimit=0 net.ipv4.ip_forward=1"]
        way = r.choice(["at", "moved"]) if space else "here"
        words = f"{mac}type macvlan mode {modes[i]}"
        if way == "at":
            c.append(f"ip link add mac{i} link {over} netns {space} {words}")
        else:
            c.append(f"ip link add mac{i} link {over} {words}")
            if way == "moved":
                c.append(f"ip link set mac{i} netns {space}")
        c += [f"{here} link set mac{i} up"] + ([f"{here} link set lo up"] if space else [])
        if space:
            c += [f"{here} addr add 10.0.0.5{i}/24 dev mac{i}"] + neighbours(here, f"mac{i}", [(ip, m) for ip, m in at.items() if ip != f"10.0.0.5{i}"])
            c += [f"{here} route add default via {r.choice(['10.0.0.10', '10.0.0.10', '10.0.0.1'])}"]
        else:
            c += [f"ip addr add 10.0.0.5{i}/32 dev mac{i}"]
        q = r.choice([[]] * 4 + [[f"tc qdisc add dev mac{i} root handle 1: prio"], [f"tc qdisc add dev mac{i} clsact", f"tc filter add dev mac{i} ingress protocol ip prio 1 flower ip_proto udp dst_port 5353 action drop"]])
        c += [spaces.in_space(space, x) if space else x for x in q]
    c += r.choice([[], [], [], [f"tc qdisc add dev {over} clsact", f"tc filter add dev {over} ingress protocol ip prio 1 flower ip_proto udp dst_port 2000 action drop"],
                   [f"tc qdisc add dev {over} root handle 1: prio", f"tc filter add dev {over} parent 1: protocol ip prio 1 u32 match ip dport 8080 0xffff action drop"]])
    spot = next((x.split()[2] for x in c if x.startswith("ip -n ") and "mac0" in x), None)
    at0 = f"ip -n {spot}" if spot else "ip"
    does = r.sample([f"{at0} link set mac0 down", f"{at0} link set mac0 up", f"{at0} link set mac0 address 02:00:00:00:00:66", f"ip link set {over} mtu 1300",
                     f"{at0} link set mac0 type macvlan mode {'vepa' if modes != ['passthru'] else 'passthru'}", f"{at0} link set mac0 allmulticast on"], r.choice([0, 0, 1, 2]))

    def frame(n):
        if r.random() < 0.15:
            return "lan1", {"from": station(2), "to": "02:00:00:00:00:11", "tags": []}, "10.1.0.12", r.choice(list(at) + ["10.1.0.1"])
        i = r.randrange(2)
        src = station(i) if r.random() < 0.8 else r.choice(macs)
        to, dst = r.choice([(m, ip) for ip, m in at.items()] * 3 + [(r.choice(macs), r.choice(list(at))), (r.choice(macs), "10.1.0.12"), (ALL, "10.0.0.255"), (ALL, r.choice(list(at))), (ALL, r.choice(list(at))),
                            ("01:00:5e:00:00:01", "224.0.0.1"), ("01:00:5e:01:02:03", "239.1.2.3"), ("02:00:00:00:09:09", "10.0.0.9"), (own, r.choice(list(at)))])
        return "lan0", {"from": src, "to": to, "tags": tags if r.random() < 0.9 else []}, f"10.0.0.{10 + i}", dst

    return wires, c, frame, does, [], []


def rules(r):
    """A bridge of two or three ports and one card besides; rules of iptables see what is bridged. The machine routes, translates, answers."""
    n = r.choice([2, 3, 3])
    wires = [f"lan{i}" for i in range(n)] + ["wan0"]
    c = ["sysctl -qw net.ipv4.ip_forward=" + r.choice(["1", "1", "1", "0"]), f"ip link add sw0 address {BRIDGE} type bridge mcast_snooping 0"]
    for i, dev in enumerate(wires):
        c.append(f"ip link set {dev} address 02:00:00:00:00:1{i}")
    for dev in wires[:-1]:
        c.append(f"ip link set {dev} master sw0")
    c += ["ip link set sw0 up", "ip addr add 10.0.0.1/24 dev sw0", "ip addr add 10.1.0.1/24 dev wan0"]
    c += neighbours("ip", "sw0", [(f"10.0.0.{10 + i}", station(i)) for i in range(n)]) + neighbours("ip", "wan0", [("10.1.0.12", station(n))])
    # Nobody here has to be asked for who he is.
    c += neighbours("ip", "sw0", [("10.0.0.77", station(0))])
    for i in range(n):
        if r.random() < 0.7:
            c.append(f"bridge fdb add {station(i)} dev lan{i} master static")
    c += ["modprobe br_netfilter", "sysctl -qw net.bridge.bridge-nf-call-iptables=" + r.choice(["1"] * 7 + ["0"])]
    if r.random() < 0.15:
        c += ["sysctl -qw net.bridge.bridge-nf-call-iptables=0", "ip link set sw0 type bridge nf_call_iptables 1"]
    port = lambda: r.choice(wires[:-1] + ["wan0", "lan+", "sw0"])
    ip = lambda: f"10.0.0.{10 + r.randrange(n)}"
    udp = lambda: r.choice([8080, 2000, 5353, 9])
    matches = [
        lambda: f"-m physdev --physdev-in {port()}", lambda: f"-m physdev ! --physdev-in {port()}", lambda: f"-m physdev --physdev-out {port()}", lambda: f"-m physdev ! --physdev-out {port()}",
        lambda: "-m physdev --physdev-is-bridged", lambda: "-m physdev ! --physdev-is-bridged", lambda: "-m physdev --physdev-is-in", lambda: "-m physdev --physdev-is-out", lambda: "-m physdev ! --physdev-is-out",
        lambda: "-i sw0", lambda: "-o sw0", lambda: "-i lan0", lambda: f"-s {ip()}", lambda: f"-d {ip()}", lambda: f"-p udp --dport {udp()}", lambda: "-p icmp", lambda: "-p tcp", lambda: "-m ttl --ttl-eq 1",
        lambda: "-m conntrack --ctstate NEW", lambda: "-m conntrack --ctstate ESTABLISHED,RELATED", lambda: "-m length --length 0:300",
    ]

    def matching(chain):
        while True:
            text = " ".join(r.choice(matches)() for _ in range(r.choice([1, 1, 1, 2])))
            wrong = chain in ("PREROUTING", "INPUT") and ("-o " in text or "-out" in text or "bridged" in text) or chain == "POSTROUTING" and "-i " in text or text.count("-p ") > 1 or text.count("-i ") > 1
            wrong = wrong or chain == "POSTROUTING" and "mac-source" in text or any(text.count(w) > 1 for w in ("-s ", "-d ", "-o ", "-m physdev", "--pkt-type", "--ctstate", "--mac", "--length", "--ttl"))
            wrong = wrong or "--dport" not in text and "dport" in text
            if not wrong:
                return text

    for _ in range(r.randint(2, 7)):
        table = r.choice(["filter", "filter", "filter", "mangle", "mangle"])
        chain = r.choice(["FORWARD", "FORWARD", "FORWARD", "INPUT"]) if table == "filter" else r.choice(["PREROUTING", "FORWARD", "POSTROUTING", "INPUT"])
        if table == "filter":
            does = r.choice(["ACCEPT", "DROP", "DROP", "REJECT", "RETURN"])
        else:
            does = r.choice(["MARK --set-mark 7", "ACCEPT", "DROP", "DSCP --set-dscp 12" if chain != "INPUT" else "ACCEPT", "TTL --ttl-set 33" if chain in ("PREROUTING", "FORWARD") else "ACCEPT"])
        text = matching(chain)
        if does == "REJECT" and "-p tcp" in text:
            does = r.choice(["REJECT", "REJECT --reject-with tcp-reset"])
        c.append(f"iptables -t {table} -A {chain} {text} -j {does}")
    for _ in range(r.choice([0, 0, 1, 1, 2])):
        c.append("iptables -t nat -A " + r.choice([
            f"PREROUTING -p udp --dport {udp()} -j DNAT --to-destination {ip()}", f"PREROUTING -p tcp -d {ip()} -j DNAT --to-destination {ip()}:8081", f"PREROUTING -p udp --dport {udp()} -j DNAT --to-destination 10.1.0.12",
            f"PREROUTING -p udp --dport {udp()} -j REDIRECT --to-ports 99", f"POSTROUTING -s {ip()} -j MASQUERADE", f"POSTROUTING -p icmp -o sw0 -j SNAT --to-source 10.0.0.200", f"POSTROUTING -o wan0 -j MASQUERADE",
            f"PREROUTING -m physdev --physdev-in lan0 -p icmp -j DNAT --to-destination {ip()}",
        ]))
    does = r.sample(["sysctl -qw net.bridge.bridge-nf-call-iptables=0", "sysctl -qw net.bridge.bridge-nf-call-iptables=1", "iptables -F FORWARD", "ip link set lan0 down", "iptables -P FORWARD DROP", "ip link set lan1 mtu 1000"], r.choice([0, 0, 1, 2]))

    def frame(n_):
        if r.random() < 0.12:
            return "wan0", {"from": station(n), "to": f"02:00:00:00:00:1{n}", "tags": []}, "10.1.0.12", r.choice([ip(), "10.0.0.1", "10.1.0.1"])
        i = r.randrange(n)
        k = r.randrange(n)
        to, dst = r.choice([(station(k), f"10.0.0.{10 + k}")] * 5 + [(BRIDGE, "10.0.0.1"), (BRIDGE, "10.1.0.12"), (BRIDGE, ip()), (ALL, "10.0.0.255"), ("02:00:00:00:09:09", "10.0.0.9"), ("01:00:5e:01:02:03", "239.1.2.3")])
        return wires[i], {"from": station(i), "to": to, "tags": r.choice([[]] * 9 + [[[0x8100, 10]]])}, f"10.0.0.{10 + i}", dst

    return wires, c, frame, does, ["bridge fdb show br sw0"], wires[:-1]


def packet(r, n, src, dst):
    p = {"src": src, "dst": dst, "ip_id": n + 1, "df": r.choice([0, 1]), "proto": r.choice(["udp", "icmp", "icmp", "tcp"]), "ttl": r.choice([64, 64, 64, 1]),
         "tos": r.choice([0, 0, 0x10, 0xb8]), "data": r.choice([0, 10, 100, 1000, 1400, 1472])}
    if p["proto"] == "udp":
        p["sport"], p["dport"] = r.randint(1024, 1100), r.choice([8080, 2000, 5353, 9])
    elif p["proto"] == "tcp":
        p["sport"], p["dport"], p["seq"], p["ack"], p["flags"], p["data"] = r.randint(1024, 1100), 80, 1000, 0, "S", 0
    else:
        p["type"], p["code"], p["id"], p["n"] = 8, 0, r.randint(1, 9), n
    return p


def rules_counted():
    """Each rule with its counters, as iptables-save tells them."""
    text = sh("ip netns exec r iptables-legacy-save -c", check=False)
    return sorted(line for line in text.split("\n") if line.startswith("["))


def case(kind, seed):
    r = random.Random(f"{kind.__name__} {seed}")
    wires, commands, frame, does, shows, _ = kind(r)
    commands = [f"sysctl -qw net.ipv4.conf.{dev}.send_redirects=0" for dev in ["all", "default", *wires]] + ["sysctl -qw net.ipv4.icmp_ratelimit=0"] + commands
    spaces.WIRES = wires
    machine = Machine(commands)
    time.sleep(0.3)
    machine.collect()
    steps, began = [], time.monotonic()
    count = r.randint(14, 22)
    when = sorted(r.sample(range(2, count), len(does)))
    for n in range(count):
        if n in when:
            do = does[when.index(n)]
            steps.append({"do": do, "at": int((time.monotonic() - began) * 1000), "out": []})
            # A command may be refused: that is part of what is recorded.
            done = subprocess.run(f"ip netns exec r {do}".replace(" iptables ", " iptables-legacy "), shell=True, capture_output=True, text=True)
            steps[-1]["exit"] = done.returncode
            time.sleep(0.4)
            machine.collect()
        dev, head, src, dst = frame(n)
        p = packet(r, n, src, dst)
        if dev == "lan1" and "ip link set lan1 mtu 1000" in does:
            p["data"] = min(p["data"], 900)  # Nor one longer than its other end takes.
        if len(head["tags"]) > 1:
            p["data"] = min(p["data"], 1400)  # A veth takes no longer frame than its MTU, an Ethernet header and one tag.
        step = {"in": dev, "frame": head, "packet": p, "at": int((time.monotonic() - began) * 1000)}
        try:
            machine.put(dev, head, p)
        except OSError:
            pass  # The other end of the wire is down.
        step["out"] = machine.collect()
        steps.append(step)
    counted = machine.counted(True)
    shown = machine.shown(shows)
    machine.close()
    return {"seed": seed, "kind": kind.__name__, "wires": wires, "setup": commands, "steps": steps, "counted": counted, "shown": shown, "rules": rules_counted()}


def main():
    kind, first, count, out = globals()[argv[1]], int(argv[2]), int(argv[3]), argv[4]
    with open(out, "w") as file:
        for seed in range(first, first + count):
            print(json.dumps(case(kind, seed)), file=file, flush=True)


main()
