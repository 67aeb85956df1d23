#!/usr/bin/env python3
"""Sender, router and receiver as namespaces; a tbf on the router towards the receiver, a netem delay on the way back; one bulk transfer.
Writes each TCP segment as the sender's device sees it (after the qdisc) and cwnd over time.
usage: tcp_trace.py CC SECONDS RATE LIMIT_BYTES DELAY OUT [sender-setup ...]"""
import ctypes, gc, json, os, socket, struct, subprocess, sys, threading, time
cc, secs, rate, limit, delay, out = sys.argv[1], float(sys.argv[2]), *sys.argv[3:7]
extra = sys.argv[7:]
def sh(c): subprocess.run(c, shell=True, check=True)
sh("ip netns add a; ip netns add r; ip netns add b")
sh("ip link add va netns a type veth peer name ra netns r")
sh("ip link add rb netns r type veth peer name vb netns b")
mac = lambda n, d: subprocess.run(f"ip -n {n} -o link show {d}", shell=True, check=True, capture_output=True, text=True).stdout.split("link/ether ")[1].split()[0]
for n, d, ip in (("a", "va", "10.0.1.1"), ("r", "ra", "10.0.1.254"), ("r", "rb", "10.0.2.254"), ("b", "vb", "10.0.2.2")):
    sh(f"ip -n {n} link set lo up; ip -n {n} link set {d} gso_max_segs 1; ip -n {n} addr add {ip}/24 dev {d}; ip -n {n} link set {d} up")
sh("ip -n a route add default via 10.0.1.254; ip -n b route add default via 10.0.2.254; ip netns exec r sysctl -qw net.ipv4.ip_forward=1")
for n, d, ip, pn, pd in (("a", "va", "10.0.1.254", "r", "ra"), ("r", "ra", "10.0.1.1", "a", "va"), ("r", "rb", "10.0.2.2", "b", "vb"), ("b", "vb", "10.0.2.254", "r", "rb")):
    sh(f"ip -n {n} neigh replace {ip} lladdr {mac(pn, pd)} dev {d} nud permanent")
sh("ip netns exec a sysctl -qw net.ipv4.tcp_no_metrics_save=1")
for e in extra: sh(e)
time.sleep(1)
sh(f"ip netns exec r tc qdisc add dev rb root tbf rate {rate} burst 1514 limit {limit}")
sh(f"ip netns exec b tc qdisc add dev vb root netem delay {delay} limit 10000")
time.sleep(2)
libc = ctypes.CDLL(None, use_errno=True)
def enter(ns):
    fd = os.open(f"/run/netns/{ns}", os.O_RDONLY); assert libc.setns(fd, 0x40000000) == 0; os.close(fd)
ev = []
pid = os.fork()
if pid == 0:      # receiver
    enter("b"); s = socket.socket(); s.bind(("10.0.2.2", 5001)); s.listen(1)
    c, _ = s.accept()
    while c.recv(1 << 20): pass
    c.close(); os._exit(0)
enter("a")
cap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
cap.bind(("va", 0x0003)); cap.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
cap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 28)
segs = []; stop = False
def capture():
    cap.settimeout(0.5)
    while not stop:
        try: p, anc, _, a = cap.recvmsg(200, 100)
        except TimeoutError: continue
        except socket.timeout: continue
        if p[12:14] != b"\x08\x00" or p[23] != 6: continue
        sec, ns = struct.unpack("qq", anc[0][2][:16])
        tot = struct.unpack("!H", p[16:18])[0]; t = p[34:]
        sp, dp, seq, ack, off, fl, win = struct.unpack("!HHIIBBH", t[:16])
        hl = (off >> 4) * 4; o = t[20:hl]; sacks = []; ts = None; i = 0; other = {}
        while i < len(o):
            k = o[i]
            if k == 0: break
            if k == 1: i += 1; continue
            l = o[i + 1]
            if k == 5: sacks = [struct.unpack("!II", o[i+2+8*j:i+10+8*j]) for j in range((l-2)//8)]
            elif k == 8: ts = struct.unpack("!II", o[i+2:i+10])
            elif k == 2: other["mss"] = struct.unpack("!H", o[i+2:i+4])[0]
            elif k == 3: other["wscale"] = o[i+2]
            i += l
        segs.append(dict(t=sec*10**9+ns, out=(dp == 5001), seq=seq, ack=ack, len=tot-20-hl, fl=fl, win=win, sack=sacks, ts=ts, tos=p[15], **other))
th = threading.Thread(target=capture); th.start()
time.sleep(0.1)
s = socket.socket(); s.setsockopt(6, 13, cc.encode())
cw = []
def poll():
    t0 = time.time()
    while not stop:
        b = s.getsockopt(6, 11, 232)
        f = struct.unpack("8B24I", b[:104])
        mem = struct.unpack("9I", s.getsockopt(1, 55, 36))
        cw.append(dict(t=time.time_ns(), state=f[0], ca=f[1], rto=f[8], unacked=f[8+4], sacked=f[8+5], lost=f[8+6], retrans=f[8+7],
                       rtt=f[8+15], rttvar=f[8+16], ssthresh=f[8+17], cwnd=f[8+18], reord=f[8+20], sndbuf=mem[3], wmem_queued=mem[5], wmem_alloc=mem[2]))
        time.sleep(0.005)
s.connect(("10.0.2.2", 5001))
pt = threading.Thread(target=poll); pt.start()
end = time.time() + secs; s.setblocking(True); buf = b"x" * 131072
s.settimeout(secs + 5)
total = 0
while time.time() < end: total += s.send(buf)
s.shutdown(1)
s.recv(1)
stop = True; th.join(); pt.join()
os.waitpid(pid, 0)
t0 = segs[0]["t"]
for x in segs: x["t"] -= t0
for x in cw: x["t"] -= t0
json.dump(dict(segs=segs, cwnd=cw, total=total), open(out, "w"))
print("segs", len(segs), "bytes", total)
