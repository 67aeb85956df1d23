#!/usr/bin/env python3
"""tcp_scenarios.py SCENARIOS.json OUT.jsonl: Linux's own TCP under exact faults, in a kernel with exact virtual time, as root.

Of each scenario one line: its description, the kernel's clock at the SYN (start_ns; and at the call of connect, where the sender's own
queue may hold the SYN: connect_ns), every segment as the sender's device sees it, and
after each of them, when they have changed, the sender's congestion window, slow-start threshold and state of recovery (TCP_INFO).
With Accurate ECN a segment has two fields more: its option (kind, counters) and the header's ECN field. Sender, router and receiver are network namespaces. Which segment is dropped, marked or comes late is decided by its number, in a small
BPF program on the router (TCX, so Linux 6.6 or newer); the router's tbf is the bottleneck, a netem at the receiver delays what it sends.

A scenario: {"name", "cc": "reno", "bytes": 100000, "rate": "10mbit", "limit": 45420, "delay_ms": 20, "sysctl": {...},
"drop": [numbers of data segments, from 0], "ce": [...], "twice": [...], "late": {"number": ms}, "drop_any": [numbers of all the sender's segments],
"drop_ack": [numbers of all the receiver's], "mtu": 1500, "rcvbuf": bytes, "sndbuf": bytes, "nodelay": true, "writes": [[ms, bytes], ...],
"chunk": bytes a write at most, "close": true when the sender shuts down behind the last byte (the receiver closes then),
"read_after_ms": 0, "read": [bytes at most, ms of pause], "back_writes": [[ms, bytes], ...] of the receiver, "reply": [bytes read, bytes to answer
them], "for_ms": 3000,
"local": ["qdisc add dev va root pfifo limit 5", ...] tc commands on the sender's own device, whose queue drops then, "udp": [bytes, us between two, how many ms
before the SYN the first] datagrams that share it, "supers": "card" when TCP makes super-packets, which cross to the router whole and which its tbf cuts,
"kernel" when the kernel cuts them before the sender's device, "module": {parameter of the control's module: value}}. Without "rate" the router passes everything at once. A late segment passes by the bottleneck's queue and takes the most of "late" instead.
"back": "100mbit", the rate of the way back, keeps ACKs of one moment apart: the clock creeps by a nanosecond a look, and a process may run between them."""
import ctypes, json, os, socket, struct, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
BPF = 321                                                  # the system call's number on x86-64
SO_TIMESTAMPNS, SO_MEMINFO, TCP_INFO, TCP_CONGESTION = 35, 55, 11, 13

def bpf(command, attributes):
    buf = ctypes.create_string_buffer(attributes.ljust(128, b'\0'), 128)
    fd = libc.syscall(BPF, command, buf, 128)
    if fd < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f'bpf {command}')
    return fd
def array(n, values):
    """A map of n words."""
    fd = bpf(0, struct.pack('=IIII', 2, 4, 4, n))
    for key, value in values.items():
        k, v = ctypes.c_uint32(key), ctypes.c_uint32(value)
        bpf(2, struct.pack('=IxxxxQQQ', fd, ctypes.addressof(k), ctypes.addressof(v), 0))
    return fd
def program(shortest, fates):
    """Counts packets of at least `shortest` bytes and gives each its number's fate: 1 drop, 2 mark 7 (late), 3 CE, 4 a copy of it too (mark 9)."""
    count, fate = array(1, {}), array(4096, fates)
    op = lambda code, dst=0, src=0, off=0, imm=0: struct.pack('=BBhi', code, src << 4 | dst, off, imm)
    lookup = lambda fd: [op(0x18, 1, 1, 0, fd), op(0), op(0xbf, 2, 10), op(0x07, 2, imm=-4), op(0x85, imm=1)]
    end = [op(0xb7, 0, imm=0), op(0x95)]
    twice = [op(0x55, 7, off=9, imm=4), op(0xb7, 1, imm=9), op(0x63, 6, 1, 8), op(0xbf, 1, 6), op(0x61, 2, 6, 40), op(0xb7, 3, imm=0), op(0x85, imm=13)]
    # Each with a header of its own (bpf_skb_pull_data), as those of a line that repeats would be.
    twice += [op(0xbf, 1, 6), op(0xb7, 2, imm=34), op(0x85, imm=39)]
    ce = [op(0x55, 7, off=2, imm=3), op(0xbf, 1, 6), op(0x85, imm=97)]
    late = [op(0x55, 7, off=2, imm=2), op(0xb7, 1, imm=7), op(0x63, 6, 1, 8)]
    drop = [op(0x55, 7, off=2, imm=1), op(0xb7, 0, imm=2), op(0x95)]
    tail = drop + late + ce + twice + end
    look = lookup(fate) + [op(0x15, 0, off=len(tail) - 1)] + [op(0x61, 7, 0, 0)]
    step = [op(0x61, 7, 0, 0), op(0xbf, 8, 7), op(0x07, 8, imm=1), op(0x63, 0, 8, 0), op(0x63, 10, 7, -4)]
    body = step + look + tail
    head = lookup(count) + [op(0x15, 0, off=len(body) - 2)]
    over = len(head) + 1 + len(body) - 2
    start = [op(0xbf, 6, 1), op(0x61, 2, 6, 8), op(0x15, 2, off=over + 2, imm=9), op(0x61, 2, 6, 0), op(0xa5, 2, off=over, imm=shortest), op(0x62, 10, off=-4)]
    code = b''.join(start + head + body)
    text, licence, log = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b'GPL'), ctypes.create_string_buffer(65536)
    try: return bpf(5, struct.pack('=IIQQIIQI', 3, len(code) // 8, ctypes.addressof(text), ctypes.addressof(licence), 1, 65536, ctypes.addressof(log), 0))
    except OSError: sys.exit(log.value.decode())

def sh(c): subprocess.run(c, shell=True, check=True)
def enter(ns):
    fd = os.open(f'/run/netns/{ns}', os.O_RDONLY)
    assert libc.setns(fd, 0x40000000) == 0
    os.close(fd)
def attach(ns, dev, prog, egress=False):
    """The program on what the device receives, or sends."""
    r, w = os.pipe()
    if os.fork() == 0:
        enter(ns)
        bpf(28, struct.pack('=IIII', prog, socket.if_nametoindex(dev), 47 if egress else 46, 0))
        os.write(w, b'.'); time.sleep(10**6)
    assert os.read(r, 1) == b'.'
def mac(n, d): return subprocess.run(f'ip -n {n} -o link show {d}', shell=True, check=True, capture_output=True, text=True).stdout.split('link/ether ')[1].split()[0]

def network(s):
    mtu = s.get('mtu', 1500)
    sh('ip netns add a; ip netns add r; ip netns add b')
    sh('ip link add va netns a type veth peer name ra netns r; ip link add rb netns r type veth peer name vb netns b')
    for n, d, ip in (('a', 'va', '10.0.1.1'), ('r', 'ra', '10.0.1.254'), ('r', 'rb', '10.0.2.254'), ('b', 'vb', '10.0.2.2')):
        sh(f'ip netns exec {n} sysctl -qw net.ipv6.conf.all.disable_ipv6=1')
        segments = s.get('gso_max_segs', 65535) if 'supers' in s else 1
        sh(f'ip -n {n} link set lo up; ip -n {n} link set {d} gso_max_segs {segments} mtu {mtu}; ip -n {n} addr add {ip}/24 dev {d}; ip -n {n} link set {d} up')
    sh('ip -n a route add default via 10.0.1.254; ip -n b route add default via 10.0.2.254; ip netns exec r sysctl -qw net.ipv4.ip_forward=1')
    for n, d, ip, pn, pd in (('a', 'va', '10.0.1.254', 'r', 'ra'), ('r', 'ra', '10.0.1.1', 'a', 'va'), ('r', 'rb', '10.0.2.2', 'b', 'vb'), ('b', 'vb', '10.0.2.254', 'r', 'rb')):
        sh(f'ip -n {n} neigh replace {ip} lladdr {mac(pn, pd)} dev {d} nud permanent')
    for key, value in dict({'net.ipv4.tcp_no_metrics_save': 1}, **s.get('sysctl', {})).items():
        for n in 'ab': sh(f"ip netns exec {n} sysctl -qw '{key}={value}'")
    for key, value in s.get('module', {}).items(): sh(f"echo {value} >/sys/module/tcp_{s['cc']}/parameters/{key}")
    queue = f"tbf rate {s.get('rate')} burst {mtu + 14} limit {s.get('limit')}"
    if 'rate' in s and 'late' not in s: sh(f'ip netns exec r tc qdisc add dev rb root {queue}')
    if 'late' in s:
        sh('ip netns exec r tc qdisc add dev rb root handle 1: prio bands 3 priomap ' + '0 ' * 16)
        if 'rate' in s: sh(f'ip netns exec r tc qdisc add dev rb parent 1:1 {queue}')
        sh(f"ip netns exec r tc qdisc add dev rb parent 1:3 netem delay {max(s['late'].values())}ms")
        sh('ip netns exec r tc filter add dev rb parent 1: protocol ip handle 7 fw flowid 1:3')
    sh(f"ip netns exec b tc qdisc add dev vb root netem delay {s.get('delay_ms', 20)}ms limit 10000" + (f" rate {s['back']}" if 'back' in s else ''))
    if s.get('supers') == 'kernel': sh('ip netns exec a ethtool -K va tso off >/dev/null')
    for command in s.get('local', []): sh(f'ip netns exec a tc {command}')
    fates = {i: 1 for i in s.get('drop', [])} | {i: 3 for i in s.get('ce', [])} | {int(i): 2 for i in s.get('late', {})} | {i: 4 for i in s.get('twice', [])}
    # On the way out, where the router has made the header its own: a clone's cannot be marked.
    if fates: attach('r', 'rb', program(100, fates), egress=True)
    if 'drop_any' in s: attach('r', 'ra', program(0, {i: 1 for i in s['drop_any']}))
    if 'drop_ack' in s: attach('r', 'rb', program(0, {i: 1 for i in s['drop_ack']}))

def sleep_until(ns):
    class Timespec(ctypes.Structure): _fields_ = [('s', ctypes.c_long), ('n', ctypes.c_long)]
    libc.clock_nanosleep(1, 1, ctypes.byref(Timespec(*divmod(ns, 10**9))), None)

def receiver(s):
    enter('b')
    l = socket.socket()
    if 'rcvbuf' in s: l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, s['rcvbuf'])
    l.bind(('10.0.2.2', 5001)); l.listen(1)
    discard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); discard.bind(('10.0.2.2', 9))
    c, _ = l.accept()
    start = time.monotonic_ns()
    if 'back_writes' in s: threading.Thread(target=write, args=(c, s['back_writes'], start, s), daemon=True).start()
    if s.get('read_after_ms'): sleep_until(start + s['read_after_ms'] * 10**6)
    most, pause = s.get('read', [1 << 20, 0])
    per, answer = s.get('reply', [0, 0])
    had = 0
    while n := len(c.recv(most)):
        had += n
        if pause: sleep_until(time.monotonic_ns() + pause * 10**6)
        while per and had >= per:
            had -= per
            c.send(b'y' * answer)
    c.close()

def write(sock, writes, start, s):
    for ms, n in writes:
        if start + ms * 10**6 > time.monotonic_ns(): sleep_until(start + ms * 10**6)
        while n > 0:
            try: n -= sock.send(b'x' * min(n, s.get('chunk', 131072)))
            except OSError: return
    if sock.getsockname()[0] == '10.0.1.1':
        if s.get('close'): sock.shutdown(socket.SHUT_WR)

def datagrams(size, gap_us, start):
    """One datagram each `gap_us` to the receiver's port 9, which nobody reads."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    n = 0
    while True:
        sleep_until(start + n * gap_us * 1000)
        sock.sendto(b'u' * size, ('10.0.2.2', 9))
        n += 1

def options(o):
    sacks, accurate, i = [], [], 0
    while i < len(o) and o[i]:
        if o[i] == 1: i += 1; continue
        if o[i] == 5: sacks = [list(struct.unpack('!II', o[i + 2 + 8 * j:i + 10 + 8 * j])) for j in range((o[i + 1] - 2) // 8)]
        if o[i] in (172, 174): accurate = [o[i]] + [int.from_bytes(o[j:j + 3], 'big') for j in range(i + 2, i + o[i + 1], 3)]
        i += o[i + 1]
    return sacks, accurate

def run(s):
    libc.prctl(29, 1, 0, 0, 0)                             # timers go off when they are due: no slack
    network(s)
    if os.fork() == 0:
        receiver(s); os._exit(0)
    enter('a')
    cap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    cap.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)
    cap.bind(('va', 3)); cap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1); cap.settimeout(0.5)
    sock = socket.socket()
    sock.setsockopt(6, TCP_CONGESTION, s.get('cc', 'reno').encode())
    if 'sndbuf' in s: sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, s['sndbuf'])
    if s.get('nodelay'): sock.setsockopt(6, 1, 1)
    segments, windows, over = [], [], False
    def look(at):
        try: f = struct.unpack('8B24I', sock.getsockopt(6, TCP_INFO, 104))
        except OSError: return
        row = [f[8 + 18], f[8 + 17], f[1]]
        if f[0] in (1, 4, 5) and (not windows or windows[-1][1:] != row): windows.append([at] + row)
    def capture():
        while not over:
            try: p, anc, _, _ = cap.recvmsg(200, 100)
            except BlockingIOError: return
            except (TimeoutError, socket.timeout): continue
            if p[12:14] != b'\x08\0' or p[23] != 6: continue
            sec, ns = struct.unpack('qq', anc[0][2][:16])
            t = p[34:]
            _, dport, seq, ack, off, flags, win = struct.unpack('!HHIIBBH', t[:16])
            hl = (off >> 4) * 4
            if not later: look(sec * 10**9 + ns)
            segments.append([sec * 10**9 + ns, '>' if dport == 5001 else '<', seq, struct.unpack('!H', p[16:18])[0] - 20 - hl, ack, (off & 1) << 8 | flags, win, options(t[20:hl]), p[15] & 3])
    # A process that every segment wakes makes ksoftirqd do the rest, and tcp_wfree lets a socket wait longer there: a card's interrupt does not.
    # Where that counts the segments are read at the end, and nothing is known of the windows.
    later = 'local' in s
    capturing = threading.Thread(target=capture)
    if not later: capturing.start()
    time.sleep(1)
    sleep_until((time.monotonic_ns() // 10**7 + 1) * 10**7 + 3_700_000)
    if 'udp' in s:
        size, gap_us, ms = s['udp']
        first = time.monotonic_ns() + 1000
        threading.Thread(target=datagrams, args=(size, gap_us, first), daemon=True).start()
        sleep_until(first + int(ms * 10**6))
    called = time.monotonic_ns()
    sock.connect(('10.0.2.2', 5001))
    start = opened = time.monotonic_ns()
    end = start + s.get('for_ms', 3000) * 10**6
    writes = s.get('writes', [[0, s.get('bytes', 10**9)]])
    threading.Thread(target=write, args=(sock, writes, start, s), daemon=True).start()
    if sum(map(sum, s.get('back_writes', []))) or 'reply' in s: threading.Thread(target=lambda: [0 for _ in iter(lambda: sock.recv(1 << 20), b'')], daemon=True).start()
    sleep_until(end)
    if later:
        cap.setblocking(False)
        capture()
    else:
        over = True
        capturing.join()
    wall = time.time_ns() - time.monotonic_ns()
    t0, isn, irs = segments[0][0], segments[0][2], next((x[2] for x in segments if x[1] == '<'), 0)
    rows = []
    for t, d, seq, n, ack, flags, win, (sacks, accurate), ecn in segments:
        mine, theirs = (isn, irs) if d == '>' else (irs, isn)
        rel = lambda x, base: (x - base) & 0xffffffff
        rows.append([(t - t0) // 1000, d, rel(seq, mine), n, rel(ack, theirs) if flags & 16 else 0, flags, win, [[rel(a, theirs), rel(b, theirs)] for a, b in sacks]])
        if s.get('sysctl', {}).get('net.ipv4.tcp_ecn', 0) > 2: rows[-1] += [accurate, ecn]
    return dict(s, start_ns=t0 - wall, **({'connect_ns': called} if 'local' in s else {}), open_us=(opened - t0 + wall) // 1000, segments=rows, cwnd=[[(t - t0) // 1000] + r for t, *r in windows])

scenarios = json.load(open(sys.argv[1]))
with open(sys.argv[2], 'w') as out:
    for s in scenarios:
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            assert libc.unshare(0x40020000) == 0           # its own /run/netns too
            sh('mount --make-rprivate /; mkdir -p /run/netns; mount -t tmpfs none /run/netns')
            line = json.dumps(run(s), separators=(',', ':'))
            with os.fdopen(w, 'w') as f: f.write(line)
            os.killpg(0, 9)
        os.close(w)
        text = os.fdopen(r).read()
        os.waitpid(pid, 0)
        if text: out.write(text + '\n')
        else: print(f"{s['name']}: no answer", file=sys.stderr)
        out.flush()
