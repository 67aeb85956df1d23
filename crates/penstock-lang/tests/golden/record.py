#!/usr/bin/env python3
"""Records what a real tc sends to the kernel and how it prints what the kernel answers.

    record.py requests TC > requests-VERSION.txt   each line of commands.txt that tc sends: request|command
    record.py shows TC    > shows-VERSION.txt      the scenes of shows.txt: what the kernel dumps, and what TC prints of it

Root, in a network namespace to throw away, with ip and tc; `requests` also wants sendlog.so beside (gcc -shared -fPIC
sendlog.c -ldl). Options are written under tc's own names, sorted; numbers are decimal.
"""
import os, socket, struct, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
U32 = lambda b, at=0: struct.unpack_from("<I", b, at)[0]
U64 = lambda b, at=0: struct.unpack_from("<Q", b, at)[0]


def attrs(b):
    out = {}
    while len(b) >= 4:
        n, kind = struct.unpack_from("<HH", b)
        if n < 4:
            break
        out[kind & 0x3FFF] = b[4:n]
        b = b[(n + 3) & ~3:]
    return out


def text(v):
    if v is True:
        return "!"
    if isinstance(v, dict):
        return "{" + ",".join(f"{k}={text(x)}" for k, x in sorted(v.items())) + "}"
    if isinstance(v, list):
        return "[" + ",".join(text(x) for x in v) + "]"
    if isinstance(v, bytes):
        return "(" + ",".join(str(x) for x in v) + ")"
    if isinstance(v, str):
        return '"' + v + '"'
    return str(v)


def ratespec(b):
    cell, layer, overhead, _, mpu, rate = struct.unpack_from("<BBHhHI", b)
    return cell, layer & 15, overhead, mpu, rate


def options(kind, b, cls):
    if b is None:
        return None
    if kind in ("pfifo", "bfifo", "pfifo_head_drop"):
        return {"limit": U32(b)}
    if kind in ("prio", "pfifo_fast"):
        return {"bands": U32(b), "priomap": b[4:20], **({"multiqueue": True} if len(b) > 24 else {})}
    if kind == "tbf":
        a = attrs(b)
        p = a[1]
        cell, layer, overhead, mpu, rate = ratespec(p)
        pcell, _, _, _, prate = ratespec(p[12:])
        limit, buffer, mtu = struct.unpack_from("<III", p, 24)
        o = dict(rate=U64(a[4]) if 4 in a else rate, limit=limit, buffer=buffer, mpu=mpu, overhead=overhead,
                 linklayer=layer, cell_log=cell)
        if prate:
            o.update(peakrate=U64(a[5]) if 5 in a else prate, mtu=mtu, peak_cell_log=pcell)
        if 6 in a:
            o["burst"] = U32(a[6])
        if 7 in a:
            o["pburst"] = U32(a[7])
        return o
    if kind == "sfq":
        names = "quantum perturb limit divisor flows depth headdrop redflowlimit min max".split()
        o = dict(zip(names, struct.unpack_from("<IiIII" + "I" * 5 if len(b) >= 40 else "<IiIII", b)))
        if len(b) >= 48:
            o["ewma"], o["plog"], o["scell_log"], o["redflags"] = b[40:44]
            o["max_p"] = U32(b, 44)
        if len(b) >= 72:
            stats = "prob_drop forced_drop prob_mark forced_mark prob_mark_head forced_mark_head".split()
            o.update(zip(stats, struct.unpack_from("<6I", b, 48)))
        o = {k: v for k, v in o.items() if v}
        if "headdrop" in o:
            o["headdrop"] = True
        return o
    if kind == "htb" and not cls:
        a = attrs(b)
        version, r2q, default, debug, direct = struct.unpack_from("<5I", a[2])
        o = dict(version=version, r2q=r2q, default=default)
        if direct:
            o["direct_packets_stat"] = direct
        if debug:
            o["debug"] = debug
        if 5 in a:
            o["direct_qlen"] = U32(a[5])
        if 9 in a:
            o["offload"] = True
        return o
    if kind == "htb":
        a = attrs(b)
        cell, layer, overhead, mpu, rate = ratespec(a[1])
        ccell, _, _, _, ceil = ratespec(a[1][12:])
        buffer, cbuffer, quantum, level, prio = struct.unpack_from("<5I", a[1], 24)
        o = dict(rate=U64(a[6]) if 6 in a else rate, ceil=U64(a[7]) if 7 in a else ceil, buffer=buffer, cbuffer=cbuffer,
                 quantum=quantum, prio=prio, mpu=mpu, overhead=overhead, linklayer=layer, cell_log=cell, ccell_log=ccell)
        if level:
            o["level"] = level
        return o
    if kind == "u32":
        a = attrs(b)
        o = {}
        for at, name in {1: "classid", 2: "hash", 3: "link", 4: "divisor", 11: "flags"}.items():
            if at in a:
                o[name] = U32(a[at])
        if 5 in a:
            s = a[5]
            flags, shift, n, offmask, off, offoff, hoff = struct.unpack_from("<BBBxHHhh", s)
            keys = []
            for i in range(n):
                mask, val = struct.unpack_from(">II", s, 16 + 16 * i)
                koff, koffmask = struct.unpack_from("<ii", s, 24 + 16 * i)
                keys.append(dict(mask=mask, val=val, off=koff, offmask=koffmask))
            o["sel"] = dict(flags=flags, offshift=shift, offmask=socket.ntohs(offmask), off=off, offoff=offoff, hoff=hoff,
                            hmask=struct.unpack_from(">I", s, 12)[0], keys=keys)
        if 8 in a:
            o["indev"] = a[8].rstrip(b"\0").decode()
        if 9 in a:
            p = a[9]
            counts = struct.unpack_from("<%dQ" % (len(p) // 8), p)
            o["pcnt"] = dict(rcnt=counts[0], rhit=counts[1], kcnts=[dict(hits=h) for h in counts[2:]])
        if 10 in a:
            o["mark"] = dict(zip(("val", "mask", "success"), struct.unpack_from("<III", a[10])))
        return o
    if kind == "fw":
        a = attrs(b)
        o = {}
        if 1 in a:
            o["classid"] = U32(a[1])
        if 3 in a:
            o["indev"] = a[3].rstrip(b"\0").decode()
        if 5 in a:
            o["mask"] = U32(a[5])
        return o
    return None


def stab(b):
    _, _, _, overhead, layer, mpu, mtu, tsize = struct.unpack_from("<BBhiIIII", attrs(b)[1])
    return dict(overhead=overhead, linklayer=layer, mpu=mpu, mtu=mtu, tsize=tsize)


def message(b):
    """netlink type, flags, tcmsg fields, attributes"""
    _, kind, flags = struct.unpack_from("<IHH", b)
    _, ifindex, handle, parent, info = struct.unpack_from("<B3xiIII", b, 16)
    return kind, flags, ifindex, handle, parent, info, attrs(b[36:])


def request(b):
    kind, flags, ifindex, handle, parent, info, a = message(b)
    what = {36: "qdisc", 37: "qdisc", 40: "class", 41: "class", 44: "filter", 45: "filter", 46: "filter"}[kind]
    if kind in (37, 41, 45):
        verb = "del"
    elif kind == 46:
        verb = "get"
    elif flags & 0x600 == 0x600:
        verb = "add"
    elif flags & 0x400:
        verb = "replace"
    elif flags & 0x100:
        verb = "link"
    else:
        verb = "change"
    name = a[1].rstrip(b"\0").decode() if 1 in a else None
    parts = [what, verb, f"handle={handle:x}", f"parent={parent:x}"]
    if what == "filter":
        parts.append(f"prio={info >> 16} protocol={socket.ntohs(info & 0xffff):x}")
        if 11 in a:
            parts.append(f"chain={U32(a[11])}")
    if name:
        parts.append(f"kind={name}")
    if 5 in a:
        parts.append("est=%d,%d" % struct.unpack_from("<bB", a[5]))
    if 8 in a:
        parts.append("stab=" + text(stab(a[8])))
    o = options(name, a.get(2), what == "class")
    if o is not None:
        parts.append(text(o))
    return " ".join(parts)


def dump(kind, ifindex=0, parent=0):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack("<IHHII", 36, kind, 0x301, 1, 0) + struct.pack("<B3xiIII", 0, ifindex, 0, parent, 0))
    found = []
    while True:
        b = s.recv(1 << 20)
        while len(b) >= 16:
            n, what = struct.unpack_from("<IH", b)
            if what == 3:
                return found
            found.append(b[:n])
            b = b[(n + 3) & ~3:]


def dumped(b, what):
    _, _, ifindex, handle, parent, info, a = message(b)
    name = a[1].rstrip(b"\0").decode()
    parts = [what, f"dev={socket.if_indextoname(ifindex)}", f"handle={handle:x}", f"parent={parent:x}", f"info={info:x}"]
    if 11 in a:
        parts.append(f"chain={U32(a[11])}")
    parts.append(f"kind={name}")
    o = options(name, a.get(2), what == "class") or {}
    if 8 in a:
        o["stab"] = stab(a[8])
    parts.append(text(o))
    if 7 in a:
        st = attrs(a[7])
        stats = {}
        if 1 in st:
            stats.update(zip(("bytes", "packets"), struct.unpack_from("<QI", st[1])))
        if 3 in st:
            names = "qlen backlog drops requeues overlimits".split()
            stats.update(zip(names, struct.unpack_from("<5I", st[3])))
        if 2 in st:
            stats["bps"], stats["pps"] = struct.unpack_from("<II", st[2])
        parts.append(text(stats))
        if 4 in st and name == "htb":
            parts.append(text(dict(zip(("lends", "borrows", "giants", "tokens", "ctokens"), struct.unpack_from("<IIIii", st[4])))))
        elif 4 in st and name == "sfq":
            parts.append(text(dict(allot=struct.unpack_from("<i", st[4])[0])))
    return " ".join(parts)


def sh(line, **kw):
    return subprocess.run(line.split(), capture_output=True, text=True, **kw)


def reset():
    for line in ("tc qdisc del dev d0 root", "tc qdisc del dev d1 root", "tc qdisc del dev d1 clsact",
                 "tc qdisc add dev d0 root handle 1: htb default 10",
                 "tc class add dev d0 parent 1: classid 1:10 htb rate 1mbit"):
        sh(line)


def main():
    mode, tc = sys.argv[1:3]
    for dev in ("d0", "d1"):
        sh(f"ip link add {dev} type dummy")
        sh(f"ip link set {dev} up")
    sys.stdout.reconfigure(line_buffering=True)
    if mode == "requests":
        log = "/tmp/sendlog"
        env = dict(os.environ, LD_PRELOAD=os.path.join(HERE, "sendlog.so"), SENDLOG=log)
        reset()
        for line in open(os.path.join(HERE, "commands.txt")).read().splitlines():
            if line.startswith("#"):
                continue
            open(log, "w").close()
            sh(tc + line[2:], env=env)
            sent = open(log).read().split()
            if sent:
                print(f"{request(bytes.fromhex(sent[0]))}|{line}")
            if " del " in line or " replace " in line or " change " in line or " link " in line or " d1 " in line:
                reset()
        return
    scene = []
    for line in open(os.path.join(HERE, "shows.txt")).read().splitlines() + [""]:
        if line.startswith("#"):
            continue
        if line:
            scene.append(line)
            continue
        if not scene:
            continue
        reset()
        print("== " + scene[0])
        for step in scene[1:]:
            if step.startswith("show "):
                continue
            done = sh(step)
            if done.returncode:
                print("!! " + step + ": " + done.stderr.strip())
        index = {dev: socket.if_nametoindex(dev) for dev in ("lo", "d0", "d1")}
        for b in dump(38):
            print("@ " + dumped(b, "qdisc"))
        for dev in ("d0", "d1"):
            for b in dump(42, index[dev]):
                print("@ " + dumped(b, "class"))
            for b in dump(46, index[dev]):
                print("@ " + dumped(b, "filter"))
        for step in scene[1:]:
            if step.startswith("show "):
                print("$ " + step[5:])
                done = sh(tc + step[7:])
                print(done.stdout, end="")
                if done.stdout and not done.stdout.endswith("\n"):
                    print("\n%% no newline")
        scene = []


main()
