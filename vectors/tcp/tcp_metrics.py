#!/usr/bin/env python3
"""tcp_metrics.py FIRST COUNT OUT.jsonl: what Linux keeps of a TCP connection for the next one (`ip tcp_metrics`), in a kernel with exact virtual time, as root.

A scenario for each of COUNT seeds from FIRST: sender a, router r, receiver b, network namespaces. The router's tbf is the bottleneck, a netem at the receiver delays
what it sends. One connection after another from a to b, each at its instant after the first, with its bytes; the sender shuts down behind them, and the receiver closes
then. Of each connection TCP_INFO as the call to connect returns: timeout in us, slow-start threshold, window, reordering; and what `ip tcp_metrics` shows at both hosts
before the next begins. Commands may be typed at both in between: settings, routes with metrics, `ip tcp_metrics`."""
import ctypes, json, os, random, socket, struct, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)

def sh(c): subprocess.run(c, shell=True, check=True)
def said(ns, c):
    # Not by ip netns exec, which waits for the kernel and so takes time.
    p = subprocess.run(c.split(), capture_output=True, text=True, preexec_fn=lambda: enter(ns))
    return [p.returncode, p.stdout, p.stderr]
def enter(ns):
    fd = os.open(f'/run/netns/{ns}', os.O_RDONLY)
    assert libc.setns(fd, 0x40000000) == 0
    os.close(fd)
def mac(n, d): return subprocess.run(f'ip -n {n} -o link show {d}', shell=True, check=True, capture_output=True, text=True).stdout.split('link/ether ')[1].split()[0]
def sleep_until(ns):
    class Timespec(ctypes.Structure): _fields_ = [('s', ctypes.c_long), ('n', ctypes.c_long)]
    libc.clock_nanosleep(1, 1, ctypes.byref(Timespec(*divmod(ns, 10**9))), None)

def addresses(six): return ('fd00:1::1', 'fd00:2::2') if six else ('10.0.1.1', '10.0.2.2')

METRICS = ['', '', '', 'reordering 8', 'cwnd lock 6', 'cwnd 30', 'rtt 300ms', 'rttvar 40ms', 'ssthresh 20', 'ssthresh lock 12', 'rtt lock 90ms', 'reordering lock 20 cwnd lock 40']
def scenario(seed):
    r = random.Random(f'tcp_metrics {seed}')
    six = r.random() < 0.3
    a, b = addresses(six)
    s = {'name': f'metrics {seed}', 'six': six, 'cc': r.choice(['reno', 'cubic', 'cubic']), 'rate': r.choice(['2mbit', '5mbit', '10mbit', '20mbit']),
         'limit': r.choice([8000, 20000, 45420, 200000]), 'delay_ms': r.choice([1, 5, 20, 40, 90])}
    s['sysctl'] = {'net.ipv4.tcp_no_ssthresh_metrics_save': r.choice([0, 0, 1]), 'net.ipv4.tcp_no_metrics_save': r.choice([0, 0, 0, 0, 1])}
    if r.random() < 0.3: s['sysctl']['net.ipv4.tcp_timestamps'] = 0
    if r.random() < 0.2: s['sysctl']['net.ipv4.tcp_sack'] = 0
    via = 'fd00:1::fe' if six else '10.0.1.254'
    route = lambda: f"ip {'-6 ' if six else ''}route replace default via {via} {r.choice(METRICS)}".strip()
    s['first'] = [route()] if r.random() < 0.6 else []
    at, s['connections'] = 0, []
    for _ in range(r.choice([2, 3, 4])):
        c = {'at_ms': at, 'bytes': r.choice([1, 1000, 20000, 100000, 300000, 1000000]), 'then': []}
        # Long enough for the slowest, with some timeouts.
        at += 12000 + r.randrange(0, 3000)
        if r.random() < 0.25: c['then'].append(route())
        if r.random() < 0.12: c['then'].append(r.choice([f'ip tcp_metrics delete {b}', 'ip tcp_metrics flush', f'ip tcp_metrics del address {b} source {a}', f'ip tcp_metrics flush {b}', f'ip tcp_metrics show {b}',
            'ip tcp_metrics show source 10.9.9.9', f'ip -4 tcp_metrics', f'ip -6 tcp_metrics show', f'ip tcp_metrics del 10.7.7.7', 'ip -s tcp_metrics flush',
            f'ip -j tcp_metrics show {b}', 'ip tcp_metrics show 10.0.0.0/8', 'ip tcp_metrics flush source fd00:1::/64', 'ip -j tcp_metrics', 'ip -j -p tcp_metrics show']))
        if r.random() < 0.1: c['then'].append(f"sysctl -w net.ipv4.tcp_no_metrics_save={r.choice([0, 1])}")
        s['connections'].append(c)
    return s

def network(s):
    sh('ip netns add a; ip netns add r; ip netns add b')
    sh('ip link add va netns a type veth peer name ra netns r; ip link add rb netns r type veth peer name vb netns b')
    for n, d, ip, ip6 in (('a', 'va', '10.0.1.1', 'fd00:1::1'), ('r', 'ra', '10.0.1.254', 'fd00:1::fe'), ('r', 'rb', '10.0.2.254', 'fd00:2::fe'), ('b', 'vb', '10.0.2.2', 'fd00:2::2')):
        sh(f'ip -n {n} link set lo up; ip -n {n} link set {d} gso_max_segs 1; ip -n {n} addr add {ip}/24 dev {d}; ip -n {n} addr add {ip6}/64 dev {d} nodad; ip -n {n} link set {d} up')
    sh('ip -n a route add default via 10.0.1.254; ip -n b route add default via 10.0.2.254; ip -n a -6 route add default via fd00:1::fe; ip -n b -6 route add default via fd00:2::fe')
    sh('ip netns exec r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1')
    for n, d, ip, ip6, pn, pd in (('a', 'va', '10.0.1.254', 'fd00:1::fe', 'r', 'ra'), ('r', 'ra', '10.0.1.1', 'fd00:1::1', 'a', 'va'), ('r', 'rb', '10.0.2.2', 'fd00:2::2', 'b', 'vb'), ('b', 'vb', '10.0.2.254', 'fd00:2::fe', 'r', 'rb')):
        for x in (ip, ip6): sh(f'ip -n {n} neigh replace {x} lladdr {mac(pn, pd)} dev {d} nud permanent')
    for key, value in s['sysctl'].items():
        for n in 'ab': sh(f"ip netns exec {n} sysctl -qw '{key}={value}'")
    sh(f"ip netns exec r tc qdisc add dev rb root tbf rate {s['rate']} burst 1514 limit {s['limit']}")
    sh(f"ip netns exec b tc qdisc add dev vb root netem delay {s['delay_ms']}ms limit 10000")
    for c in s['first']: sh(f'ip netns exec a {c}')

def receiver(s):
    enter('b')
    l = socket.socket(socket.AF_INET6 if s['six'] else socket.AF_INET)
    l.bind((addresses(s['six'])[1], 5001)); l.listen(5)
    while True:
        c, _ = l.accept()
        while c.recv(1 << 20): pass
        c.close()

def info(sock):
    f = struct.unpack('8B24I', sock.getsockopt(6, 11, 104))
    return {'rto_us': f[8], 'ssthresh': f[8 + 17], 'cwnd': f[8 + 18], 'reordering': f[8 + 20]}

def run(s):
    libc.prctl(29, 1, 0, 0, 0)
    network(s)
    if os.fork() == 0:
        receiver(s); os._exit(0)
    enter('a')
    time.sleep(1)
    start = (time.monotonic_ns() // 10**7 + 200) * 10**7 + 3_700_000
    for c in s['connections']:
        at = start + c['at_ms'] * 10**6
        sleep_until(at)
        sock = socket.socket(socket.AF_INET6 if s['six'] else socket.AF_INET)
        sock.setsockopt(6, 13, s['cc'].encode())
        sock.connect((addresses(s['six'])[1], 5001))
        c['open'] = info(sock)
        n = c['bytes']
        while n > 0: n -= sock.send(b'x' * min(n, 131072))
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16): pass
        sock.close()
        c['took_ms'] = (time.monotonic_ns() - at) // 10**6
        sleep_until(at + 11_500_000_000)
        c['kept'] = [said(n, 'ip tcp_metrics show')[1] for n in 'ab']
        c['said'] = [said('a', t) for t in c['then']]
    return dict(s, start_ns=start)

first, count = int(sys.argv[1]), int(sys.argv[2])
with open(sys.argv[3], 'w') as out:
    for seed in range(first, first + count):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            assert libc.unshare(0x40020000) == 0
            sh('mount --make-rprivate /; mkdir -p /run/netns; mount -t tmpfs none /run/netns')
            line = json.dumps(run(scenario(seed)), separators=(',', ':'))
            with os.fdopen(w, 'w') as f: f.write(line)
            os.killpg(0, 9)
        os.close(w)
        text = os.fdopen(r).read()
        os.waitpid(pid, 0)
        if text: out.write(text + '\n')
        else: print(f'{seed}: no answer', file=sys.stderr)
        out.flush()
