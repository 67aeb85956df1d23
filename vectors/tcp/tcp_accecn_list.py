#!/usr/bin/env python3
"""tcp_accecn_list.py [FIRST LAST]: scenarios of Accurate ECN for tcp_scenarios.py, by dice: those of tcp_scenario_list.py with marks, for Linux 7.2."""
import contextlib, io, json, os, random, sys

FIRST, LAST = (int(n) for n in sys.argv[1:3]) if len(sys.argv) > 2 else (1, 90)
sys.argv = [sys.argv[0], '0', '0']
with contextlib.redirect_stdout(io.StringIO()):
    exec(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tcp_scenario_list.py')).read())
all = []
for n in range(FIRST, LAST):
    s, r = chance(7000 + n), random.Random(n)
    n_segments = s['bytes'] // (s.get('mtu', 1500) - 64) + 2
    s['name'] = f'accurate {n}'
    settings = s.setdefault('sysctl', {})
    settings['net.ipv4.tcp_ecn'] = r.choice((3, 3, 3, 4, 5))
    settings['net.ipv4.tcp_ecn_option'] = r.choice((0, 1, 2, 2, 3))
    if 'ce' not in s and r.random() < 0.8:
        p = r.choice((0.01, 0.05, 0.3, 0.9))
        s['ce'] = [i for i in range(n_segments) if r.random() < p and i not in s.get('drop', [])]
    # A segment has one fate.
    for other in ('twice', 'late'):
        if other in s: s['ce'] = [i for i in s.get('ce', []) if i not in s[other] and str(i) not in s[other]]
    all.append(s)
print(json.dumps(all))
