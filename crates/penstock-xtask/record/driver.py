"""driver.py PROBE DIR: run the probe over every DIR/*.spec.json inside one boot of the kernel.

The probe (qdisc_order.py) is run anew in a forked child for each specification: it makes its own network namespace and
starts with the same state as every other; only the start of the interpreter is shared. Each child starts at the same
distance from a tick of the clock (and in the same phase of CoDel's clock and of the kernel's own timers) as it would alone in a fresh boot, so that what depends on that (the moment of a
blocked line's release, tokens that gather while commands run) is the same too. Beside each NAME.spec.json appears
NAME.out.json, or NAME.err with what the probe said.

A packet of the specification that has the field "run" is a command instead, carried out at its moment in the midst of
the traffic. The probe knows nothing of that: it sends a frame, and the socket it sends by runs the command. What was
refused stands in the answer's "refused", what commands print that show something in its "printed". "$T0+NS" in a command is that moment of the sequence by CLOCK_TAI, in the answer too. Where the specification has "filters" (places such as "parent 1:"), the answer's
"filters" are the lines that `tc -s filter show` has for them, without the seconds that actions have been there.

"tx_queues" is how many transmit queues the device has, 1 without it.

A packet with "txtime_us" is sent by a socket with SO_TXTIME, and asks to leave that long after its own moment; "txtime_clock" (tai, realtime, monotonic) and
"txtime_deadline" are what the socket says of such times.

A packet with "gso_size" is a super-packet: it goes out of a packet socket with a header of virtio (PACKET_VNET_HDR), whose segments carry so many bytes
each. Every segment has its packet's number and its own at the beginning of its payload; the "segment" of a departure is the latter, where the packet was cut.

"release": "arrive" turns the probe round: the packets go out of the peer and arrive at the device; "departures" are those that got past its
ingress hook to the protocols (sockets for IPv4 and IPv6)."""
import ctypes, ctypes.util, errno, json, os, re, shlex, socket, struct, subprocess, sys, time  # noqa: F401 (for the children)

# Where a fresh boot's script stands, in a step that is whole in ticks of 10 ms, in CoDel's units of 1024 ns, and in the 110 ms of the kernel's
# own timers (pktgen's threads, tcp_orphan_update), on whose ticks an idle kernel wakes.
STEP = 880_000_000
START = 121_746_669

def wait_for_phase():
    libc = ctypes.CDLL(None, use_errno=True)
    class Timespec(ctypes.Structure):
        _fields_ = [('s', ctypes.c_long), ('n', ctypes.c_long)]
    libc.prctl(29, 1, 0, 0, 0)
    t = (time.monotonic_ns() // STEP + 1) * STEP + START
    libc.clock_nanosleep(1, 1, ctypes.byref(Timespec(*divmod(t, 10**9))), None)

def commands(spec, mode):
    """The commands among the packets, by packet number."""
    found, i = {}, 0
    for p in spec['packets']:
        if 'run' in p:
            c = p['run'].replace('$DEV', 'v0').replace('$PARENT', 'root' if mode == 'none' else 'parent 7fff:1')
            w = shlex.split(c)
            found[i] = w if w and w[0] in ('ip', 'tc') else ['tc'] + w
        i += int(p.get('repeat', 1))
    return found

MOMENTS = {}
TAI_OFFSET = [0]

def with_moments(word):
    """A command's word, where "$T0+NS" is that moment by CLOCK_TAI."""
    def moment(m):
        at = str(socket.socket.t0 + TAI_OFFSET[0] + int(m[1]))
        MOMENTS[at] = m[0]
        return at
    return re.sub(r'\$T0\+(\d+)', moment, word)

def named_again(value):
    """An answer in which such moments have their names again."""
    if isinstance(value, list):
        return [named_again(v) for v in value]
    if isinstance(value, dict):
        return {k: named_again(v) for k, v in value.items()}
    if isinstance(value, str):
        for at, name in MOMENTS.items():
            value = value.replace(at, name)
        return value
    return MOMENTS.get(str(value), value) if type(value) is int else value

SECONDS = re.compile(r' (installed|used|firstused|expires|first used) \d+ sec')

def sockets_that_run(todo, refused, printed):
    """A socket whose sendto runs a command where the frame's number is one's."""
    plain = socket.socket
    class Running(plain):
        def sendto(self, frame, address):
            i = struct.unpack('!H', frame[18:20])[0] if frame[12:14] == b'\x08\0' else None
            if i not in todo:
                return plain.sendto(self, frame, address)
            r = subprocess.run([with_moments(w) for w in todo[i]], capture_output=True, text=True)
            if r.returncode:
                refused.append({'i': i, 'error': f"{' '.join(todo[i])}: {(r.stderr or r.stdout).strip()}"})
            elif r.stdout:
                printed.append({'i': i, 'lines': [SECONDS.sub('', line) for line in r.stdout.splitlines()]})
            return len(frame)
    socket.socket = Running

SO_TXTIME = 61
CLOCKS = {'realtime': time.CLOCK_REALTIME, 'monotonic': time.CLOCK_MONOTONIC, 'tai': 11}

def departures(spec):
    """What packets ask for by SO_TXTIME, by packet number: ns from the start, clock, deadline."""
    found, i = {}, 0
    for p in spec['packets']:
        for k in range(int(p.get('repeat', 1))):
            if 'txtime_us' in p:
                at = round((p.get('t_us', 0) + k * p.get('gap_us', 0)) * 1000) + round(p['txtime_us'] * 1000)
                found[i] = (at, CLOCKS[p.get('txtime_clock', 'tai')], bool(p.get('txtime_deadline')))
            i += 1
    return found

def sockets_that_ask(asked):
    """A socket whose sendto asks for a time of departure where the frame's number is one's: by a socket for each clock and mode."""
    below = socket.socket
    def offset(clock):
        then = time.clock_gettime_ns(clock)
        return then - (time.monotonic_ns() - 1)
    offsets = {clock: 0 if clock == time.CLOCK_MONOTONIC else offset(clock) for clock in CLOCKS.values()}
    plain = below.__mro__[1] if below.__name__ == 'Running' else below
    class Asking(below):
        t0, others, wishes = None, {}, {}
        def setsockopt(self, level, name, value):
            Asking.wishes[name] = value
            return below.setsockopt(self, level, name, value)
        def sendto(self, frame, address):
            i = struct.unpack('!H', frame[18:20])[0] if frame[12:14] == b'\x08\0' else struct.unpack('!I', frame[-4:])[0]
            if i not in asked:
                return below.sendto(self, frame, address)
            at, clock, deadline = asked[i]
            other = self.others.get((clock, deadline))
            if other is None:
                other = self.others[clock, deadline] = plain(socket.AF_PACKET, socket.SOCK_RAW, 0)
                other.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack('=iI', clock, 1 if deadline else 0))
                other.setsockopt(socket.SOL_SOCKET, 32, 1 << 29)  # SO_SNDBUFFORCE
            for name in (socket.SO_PRIORITY, socket.SO_MARK):
                other.setsockopt(socket.SOL_SOCKET, name, Asking.wishes.get(name, 0))
            due = struct.pack('=Q', Asking.t0 + at + offsets[clock])
            return other.sendmsg([frame], [(socket.SOL_SOCKET, SO_TXTIME, due)], 0, address)
    socket.socket = Asking

MARK = b'\x5e\x67'

class Number(int):
    """A packet's number, with the segment's where it was cut."""
    told = {}

def super_packets(spec):
    """The super-packets: by packet number the bytes a segment carries, where the payload begins, and the whole length."""
    found, i = {}, 0
    for p in spec['packets']:
        v6 = ':' in p.get('src', '')
        tcp = p.get('proto') in ('tcp', 6)
        for k in range(int(p.get('repeat', 1))):
            if 'gso_size' in p:
                payload = 14 + (40 if v6 else 20) + (20 if tcp else 8)
                if int(p['len']) - payload > p['gso_size']:
                    found[i] = (p['gso_size'], payload, int(p['len']), v6, tcp)
            i += 1
    return found

def sockets_that_segment(supers):
    """A socket whose sendto sends super-packets by another, with a header of virtio."""
    below = socket.socket
    plain = below.__mro__[1] if below.__name__ in ('Running', 'Asking') else below
    class Segmenting(below):
        other, wishes = None, {}
        def setsockopt(self, level, name, value):
            Segmenting.wishes[name] = value
            return below.setsockopt(self, level, name, value)
        def sendto(self, frame, address):
            i = Segmenting.number(frame)
            if i not in supers:
                return below.sendto(self, frame, address)
            size, payload, _, v6, tcp = supers[i]
            if Segmenting.other is None:
                Segmenting.other = plain(socket.AF_PACKET, socket.SOCK_RAW, 0)
                Segmenting.other.setsockopt(263, 15, 1)           # SOL_PACKET, PACKET_VNET_HDR
                Segmenting.other.setsockopt(socket.SOL_SOCKET, 32, 1 << 29)  # SO_SNDBUFFORCE
            for name in (socket.SO_PRIORITY, socket.SO_MARK):
                Segmenting.other.setsockopt(socket.SOL_SOCKET, name, Segmenting.wishes.get(name, 0))
            kind = (4 if v6 else 1) if tcp else 5
            header = struct.pack('=BBHHHH', 1, kind, 0, size, 54 if v6 else 34, 16 if tcp else 6)
            return Segmenting.other.sendto(header + frame, address)
        @staticmethod
        def marked(frame, i):
            if i not in supers:
                return frame
            size, payload, whole, _, _ = supers[i]
            frame, n = bytearray(frame), 0
            for at in range(payload, whole, size):
                mark = (MARK + struct.pack('!HH', i, n))[:whole - at]
                frame[at:at + len(mark)] = mark
                n += 1
            return bytes(frame)
        @staticmethod
        def number(frame):
            """The number of a frame that is sent or has come."""
            for payload in {s[1] for s in supers.values()}:
                mark = frame[payload:payload + 6]
                if len(mark) == 6 and mark[:2] == MARK:
                    i, n = struct.unpack('!HH', mark[2:])
                    if i in supers and supers[i][1] == payload:
                        number = Number(i)
                        if len(frame) < supers[i][2]:
                            number.told = {'segment': n}
                        return number
            if frame[12:14] == b'\x08\0':
                return struct.unpack('!H', frame[18:20])[0]
            return struct.unpack('!I', frame[-4:])[0] if frame[12:14] == b'\x86\xdd' else None
    socket.socket = Segmenting

def with_super_packets(source):
    """The probe that knows packets and their segments by what stands in them."""
    for old, new in (
        ("frames = [frame(i, p) for i, p in enumerate(pk)]", "frames = [socket.socket.marked(frame(i, p), i) for i, p in enumerate(pk)]"),
        ("i = number(f)", "i = socket.socket.number(f)"),
        ("dict(i=i, t_ns=t)", "dict(i=i, t_ns=t, **getattr(i, 'told', {}))"),
    ):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source

def that_tells_its_start(source):
    """The probe whose sockets know the moment of t_us = 0."""
    old = "t0 = (now() //"
    assert source.count(old) == 1, old
    return source.replace(old, "t0 = socket.socket.t0 = (now() //")

def with_commands(base, todo, refused, printed):
    """The answer knows which of its packets were commands."""
    out = json.load(open(base + '.out.json'))
    out['drops'] = [d for d in out['drops'] if d['i'] not in todo]
    out['refused'] = refused
    if printed:
        out['printed'] = printed
    out = named_again(out)
    open(base + '.out.json', 'w').write(json.dumps(out, separators=(',', ':')) + '\n')

def with_filters(base, places):
    """The filters as they are at the end."""
    out = json.load(open(base + '.out.json'))
    def show(place):
        r = subprocess.run(['tc', '-s', 'filter', 'show', 'dev', 'v0'] + shlex.split(place), capture_output=True, text=True)
        return [SECONDS.sub('', line) for line in r.stdout.splitlines()]
    out['filters'] = [show(place) for place in places]
    open(base + '.out.json', 'w').write(json.dumps(out, separators=(',', ':')) + '\n')

def turned(source):
    """The probe with its two ends changed."""
    for old, new in (
        ("('link', 'block', 'none')", "('link', 'block', 'none', 'arrive')"),
        ("rx.bind((PEER, ETH_P_ALL))", "rx.bind((DEV, ETH_P_IP))"),
        ("tx.bind((DEV, ETH_P_IP))", "tx.bind((PEER, ETH_P_IP))"),
        ("tx.sendto(frames[i], (DEV,", "tx.sendto(frames[i], (PEER,"),
        ("\\x01\\x88\\xb5' + bytes(1500)", "\\x01\\x08\\x00' + bytes(1500)"),
        ("if mode != 'none':", "if mode not in ('none', 'arrive'):"),
        ("'root' if mode == 'none'", "'root' if mode in ('none', 'arrive')"),
        ("rate=rate if mode != 'none' else None", "rate=None"),
        ("            try: f, anc, _, _ = rx.recvmsg(65600, 256)\n            except BlockingIOError: break",
         "            try: f, anc, _, _ = rx.recvmsg(65600, 256)\n            except BlockingIOError:\n"
         "                try: f, anc, _, _ = rx6.recvmsg(65600, 256)\n                except BlockingIOError: break"),
        ("    tx = socket.socket(", "    rx6 = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)\n"
         "    rx6.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 29); rx6.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)\n"
         "    rx6.bind((DEV, ETH_P_IPV6)); rx6.setblocking(False)\n    tx = socket.socket("),
        ("for i, t in got],", "for i, t in sorted(got, key=lambda g: (g[1], g[0]))],"),
    ):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source

def with_queues(source, queues):
    """The probe with a device of several transmit queues."""
    old = "'txqueuelen', '1000', 'type'"
    assert source.count(old) == 1, old
    return source.replace(old, f"'txqueuelen', '1000', 'numtxqueues', '{queues}', 'type'")

probe, folder = sys.argv[1:3]
source = open(probe).read()
code = {arrive: compile(turned(source) if arrive else source, probe, 'exec') for arrive in (False, True)}
for name in sorted(os.listdir(folder)):
    if not name.endswith('.spec.json'):
        continue
    base = os.path.join(folder, name[:-len('.spec.json')])
    pid = os.fork()
    if pid == 0:
        sys.argv = [probe, base + '.spec.json', base + '.out.json']
        status, err = 0, ''
        spec = json.load(open(base + '.spec.json'))
        arrive = spec.get('release') == 'arrive'
        todo, refused, printed = commands(spec, 'none' if arrive else spec.get('release', 'link')), [], []
        if todo:
            sockets_that_run(todo, refused, printed)
        asked = departures(spec)
        if asked:
            sockets_that_ask(asked)
        supers = super_packets(spec)
        if supers:
            sockets_that_segment(supers)
        try:
            program = code[arrive]
            tells = bool(asked) or any('$T0' in w for c in todo.values() for w in c)
            if tells:
                TAI_OFFSET[0] = time.clock_gettime_ns(11) - (time.monotonic_ns() - 1)
            if 'tx_queues' in spec or tells or supers:
                text = turned(source) if arrive else source
                if tells:
                    text = that_tells_its_start(text)
                if supers:
                    text = with_super_packets(text)
                program = compile(with_queues(text, spec['tx_queues']) if 'tx_queues' in spec else text, probe, 'exec')
            wait_for_phase()
            exec(program, {'__name__': '__main__'})
            if todo:
                with_commands(base, todo, refused, printed)
            if 'filters' in spec:
                with_filters(base, spec['filters'])
        except SystemExit as e:
            if e.code not in (None, 0):
                status, err = 1, str(e.code)
        except BaseException as e:
            status, err = 1, f'{type(e).__name__}: {e}'
        if status:
            open(base + '.err', 'w').write(err + '\n')
        os._exit(status)
    os.waitpid(pid, 0)
