#!/usr/bin/env python3
"""record.py > scenarios.jsonl: ns-2's one-way TCP (Debian's ns2 2.35) on a line of 1.5 Mbit/s and 15 ms, packets dropped or marked by their number.

Of each scenario one line: what it was, and every packet as it was put into the queue of its link: [time in us, ">" or "<", number, blocks of the ACK]."""
import itertools, json, subprocess, tempfile, os

TCL = '''
Agent/TCP set packetSize_ 1460
Agent/TCP set minrto_ %(minrto)s
Agent/TCP set precisionReduce_ %(precise)s
Agent/TCP set SetCWRonRetransmit_ %(cwr)s
Agent/TCP set window_ %(window)d
set ns [new Simulator]
$ns trace-all [open %(out)s w]
set a [$ns node]; set b [$ns node]
$ns simplex-link $a $b 1.5Mb 15ms DropTail
$ns simplex-link $b $a 1.5Mb 15ms DropTail
$ns queue-limit $a $b %(limit)d
$ns queue-limit $b $a 1000
set em [new ErrorModel/List]
$em droplist {%(drop)s}
$em set markecn_ %(mark)s
$em drop-target [new Agent/Null]
$ns link-lossmodel $em $a $b
set t [new Agent/TCP%(agent)s]; set s [new Agent/TCPSink%(sink)s]
if {%(ecn)d} {$t set ecn_ 1}
$ns attach-agent $a $t; $ns attach-agent $b $s; $ns connect $t $s
set f [new Application/FTP]; $f attach-agent $t
$ns at 0 "$f start"
$ns at %(secs)s {$ns flush-trace; exit 0}
$ns run
'''
AGENTS = {'tahoe': ('', ''), 'reno': ('/Reno', ''), 'newreno': ('/Newreno', ''), 'sack1': ('/Sack1', '/Sack1')}
DROPS = {'none': [], 'one': [30], 'two': [30, 33], 'five': [40, 41, 43, 45, 46], 'the window': list(range(50, 58)), 'again': [30, 51, 52], 'first data': [1], 'syn': [0],
         'late': [100, 140, 141, 180]}
for agent, (name, drop) in itertools.product(AGENTS, DROPS.items()):
    for ecn, mark, delack in ((0, 0, 0), (1, 1, 0), (1, 0, 0), (0, 0, 1)):
        if mark and name == 'syn' or ecn and not mark and name not in ('one', 'five') or delack and name not in ('one', 'two', 'none'): continue
        for limit in (1000, 8) if name == 'none' and not ecn else (1000,):
            out = tempfile.mktemp()
            sink = AGENTS[agent][1] + ('/DelAck' if delack else '')
            era = dict(minrto='1' if name == 'late' else '0.2', precise='false' if name == 'late' else 'true', cwr='false' if name == 'late' else 'true')
            tcl = TCL % dict(era, window=20 if limit == 1000 else 64, out=out, limit=limit, drop=' '.join(map(str, drop)), mark='true' if mark else 'false', agent=AGENTS[agent][0], sink=sink, ecn=ecn, secs=4)
            with tempfile.NamedTemporaryFile('w', suffix='.tcl', delete=False) as f: f.write(tcl)
            subprocess.run(['ns', f.name], check=True)
            rows, blocks = [], None
            for line in open(out):
                w = line.split()
                if w[0] != '+': continue
                rows.append([round(float(w[1]) * 1e6), '>' if w[4] == 'tcp' else '<', int(w[10])])
            os.unlink(out); os.unlink(f.name)
            print(json.dumps(dict(name=f"{agent}, {name}{', marked' if mark else ', ECN' if ecn else ''}{', delayed ACKs' if delack else ''}{', queue of 8' if limit == 8 else ''}", agent=agent, drop=drop, mark=bool(mark), ecn=bool(ecn),
                                  delack=bool(delack), limit=limit, window=20 if limit == 1000 else 64, old=name == 'late', packets=rows), separators=(',', ':')))
