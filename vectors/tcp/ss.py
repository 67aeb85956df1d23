#!/usr/bin/env python3
"""ss.py FIRST COUNT OUT.jsonl: what `ss` of iproute2 6.1 shows of sockets in the midst of their work, in a kernel with exact virtual time, as root.

A scenario for each of COUNT seeds from FIRST: sender a, router r, receiver b, network namespaces. The router's tbf is the bottleneck, a netem at the receiver delays
what it sends. Connections from a to b begin at their instants, with a congestion control, buffers and writes at times of their own (`writes`: ms after the first, bytes);
the sender shuts down behind the last. The receiver reads as things come, or from `read_ms` on (after its start), and closes at the end of what comes, or at `close_ms`.
A socket of UDP listens at b, one of a is connected to it. `samples`: at an instant after the first, at a host, a command; `said` is its status and what it printed."""
import ctypes, json, os, random, socket, subprocess, sys, time

libc = ctypes.CDLL(None, use_errno=True)

def sh(c): subprocess.run(c, shell=True, check=True)
def said(ns, c):
    # Not by ip netns exec, which waits for the kernel and so takes time.
    p = subprocess.run(c, capture_output=True, text=True, preexec_fn=lambda: enter(ns))
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

def filters(six):
    a, b = addresses(six)
    b6 = f'[{b}]' if six else b
    return [[], [], [], [], [], ['dst', b], ['src', a], ['dst', f'{b6}:5001'], ['sport', '=', ':5001'], ['dport', '=', ':5002'], ['( sport = :5001 or sport = :5002 )'],
        ['not', 'dport', '=', ':5001'], ['dport', '>=', '5002'], ['sport', 'lt', '5002', 'and', 'src', f'{a[:4]}::/16' if six else '10.0.0.0/8'],
        ['state', 'established'], ['state', 'connected'], ['state', 'time-wait'], ['state', 'listening'], ['exclude', 'established'], ['state', 'fin-wait-2', 'state', 'close-wait'],
        ['state', 'synchronized', f'dst {b}/20' if not six else f'dst {b}/64', 'or', 'dport', '5003'], ['state', 'big'], ['state', 'bucket']]
FLAGS = [['-tin'], ['-tin'], ['-ti'], ['-tina'], ['-tn'], ['-tan'], ['-tmn'], ['-tinmo'], ['-tinmoe'], ['-tno'], ['-tlin'], ['-ltn'], ['-Htin'], ['-tiOn'], ['-HOntim'], ['-tu', '-an'], ['-uan'], ['-unam'],
    ['-4tin'], ['-6tn'], ['-tin', '--tos'], ['-i', '-n'], ['-ne'], ['-ltun'], ['--tcp', '--info', '--numeric', '--memory'], ['-tain', '--inet-sockopt']]
MSS_OF = ['', '', '', '', 'mtu 1400', 'mtu 1000', 'advmss 1200']

def scenario(seed):
    r = random.Random(f'ss {seed}')
    six = r.random() < 0.3
    s = {'name': f'ss {seed}', 'six': six, 'rate': r.choice(['2mbit', '5mbit', '10mbit', '20mbit']), 'limit': r.choice([8000, 20000, 45420, 200000, 1000000]), 'delay_ms': r.choice([1, 5, 20, 40, 90])}
    s['sysctl'] = {}
    if r.random() < 0.2: s['sysctl']['net.ipv4.tcp_timestamps'] = 0
    if r.random() < 0.15: s['sysctl']['net.ipv4.tcp_sack'] = 0
    if r.random() < 0.15: s['sysctl']['net.ipv4.tcp_window_scaling'] = 0
    if r.random() < 0.25: s['sysctl']['net.ipv4.tcp_ecn'] = 1
    if r.random() < 0.15: s['sysctl']['net.ipv4.tcp_wmem'] = '4096 16384 65536'
    if r.random() < 0.15: s['sysctl']['net.ipv4.tcp_rmem'] = '4096 65536 100000'
    via = 'fd00:1::fe' if six else '10.0.1.254'
    s['first'] = [f"ip {'-6 ' if six else ''}route replace default via {via} {r.choice(MSS_OF)}".strip()]
    s['udp'] = r.random() < 0.3
    s['connections'], end = [], 0
    for n in range(r.choice([1, 1, 2, 3])):
        c = {'at_ms': 0 if n == 0 else r.randrange(0, 2000), 'port': 5001 + n, 'cc': r.choice(['reno', 'westwood', 'bic', 'htcp', 'bbr'] if r.random() < 0.5 else ['cubic'])}
        at, c['writes'] = 0, []
        for _ in range(r.choice([1, 1, 1, 2, 5, 10])):
            c['writes'].append([at, r.choice([1, 100, 1000, 5000, 20000, 100000, 300000, 1000000])])
            at += r.choice([1, 10, 50, 150, 400, 1000]) + r.randrange(0, 100)
        # Beyond that dice decide what BBR does.
        if c['cc'] == 'bbr': c['writes'] = [[0, r.choice([1, 1000, 20000, 60000])]]
        c['sndbuf'] = r.choice([0, 0, 0, 0, 8192, 30000])
        c['rcvbuf'] = r.choice([0, 0, 0, 0, 8192, 40000])
        c['read_ms'] = r.choice([0, 0, 0, 0, 500, 2000])
        c['close_ms'] = r.choice([0, 0, 0, at + 3000])
        s['connections'].append(c)
    s['samples'] = []
    for _ in range(r.choice([4, 6, 8, 12])):
        x = r.random()
        at = r.uniform(0.1, 300) if x < 0.3 else r.uniform(0.1, 4000) if x < 0.8 else r.uniform(4000, 40000)
        s['samples'].append({'at_us': int(at * 1000), 'host': r.choice('aab'), 'command': ['ss'] + r.choice(FLAGS) + r.choice(filters(six))})
    s['samples'].sort(key=lambda x: x['at_us'])
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

def receiver(s, start, c):
    enter('b')
    l = socket.socket(socket.AF_INET6 if s['six'] else socket.AF_INET)
    if c['rcvbuf']: l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, c['rcvbuf'])
    l.bind((addresses(s['six'])[1], c['port'])); l.listen(5)
    k, _ = l.accept()
    opened = start + c['at_ms'] * 10**6
    if c['read_ms']: sleep_until(opened + c['read_ms'] * 10**6)
    while k.recv(1 << 20): pass
    if c['close_ms']: sleep_until(opened + c['close_ms'] * 10**6)
    k.close()
    time.sleep(1000)

def sender(s, start, c):
    enter('a')
    at = start + c['at_ms'] * 10**6
    sleep_until(at)
    sock = socket.socket(socket.AF_INET6 if s['six'] else socket.AF_INET)
    sock.setsockopt(6, 13, c['cc'].encode())
    if c['sndbuf']: sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, c['sndbuf'])
    sock.connect((addresses(s['six'])[1], c['port']))
    for ms, n in c['writes']:
        sleep_until(at + ms * 10**6)
        while n > 0: n -= sock.send(b'x' * min(n, 131072))
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(1 << 16): pass
    sock.close()

def udp(s, where):
    enter(where)
    u = socket.socket(socket.AF_INET6 if s['six'] else socket.AF_INET, socket.SOCK_DGRAM)
    peer = (addresses(s['six'])[1], 7000)
    if where == 'b': u.bind(peer)
    else: u.bind((addresses(s['six'])[0], 7001)); u.connect(peer)
    time.sleep(1000)

def run(s):
    libc.prctl(29, 1, 0, 0, 0)
    network(s)
    time.sleep(1)
    start = (time.monotonic_ns() // 10**7 + 200) * 10**7 + 3_700_000
    def child(f, *args):
        if os.fork() == 0:
            f(*args); os._exit(0)
    for c in s['connections']: child(receiver, s, start, c)
    if s['udp']: child(udp, s, 'b'); child(udp, s, 'a')
    for c in s['connections']: child(sender, s, start, c)
    for x in s['samples']:
        sleep_until(start + x['at_us'] * 1000)
        x['said'] = said(x['host'], x['command'])
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
