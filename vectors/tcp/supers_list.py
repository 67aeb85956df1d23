"""Writes the scenarios of supers.jsonl, in which TCP makes super-packets: supers_list.py > SCENARIOS.json.
With two numbers, those that the seeds from the first to before the second give and no others."""
import json, random, sys

# What stands at the sender's own device.
def none(r): return []
def tbf(r): return [f'qdisc add dev va root tbf rate {r.choice((2, 10, 40))}mbit burst {r.choice((1514, 5000, 70000))} limit {r.choice((20000, 60000, 300000))}']
def pfifo(r): return [f'qdisc add dev va root handle 1: tbf rate {r.choice((5, 20, 80))}mbit burst 70000 limit 400000', f'qdisc add dev va parent 1: pfifo limit {r.choice((2, 5, 20))}']
def htb(r): return ['qdisc add dev va root handle 1: htb default 10', f'class add dev va parent 1: classid 1:10 htb rate {r.choice((3, 10, 50))}mbit burst {r.choice((1514, 3028, 15000))} cburst 1514',
                    f'qdisc add dev va parent 1:10 pfifo limit {r.choice((3, 10, 100))}']
def fq_codel(r): return [f'qdisc add dev va root handle 1: tbf rate {r.choice((5, 20))}mbit burst 70000 limit 400000',
                         f'qdisc add dev va parent 1: fq_codel limit 200 flows 4096 target 2ms interval 20ms {r.choice(("ecn", "noecn"))}']
def fq(r): return ['qdisc add dev va root fq']
LOCAL = dict(none=none, tbf=tbf, pfifo=pfifo, htb=htb, fq_codel=fq_codel, fq=fq)

def chance(seed):
    """One scenario by dice."""
    r = random.Random(seed)
    kind = r.choice(list(LOCAL))
    s = dict(name=f'supers {seed} {kind}', cc=r.choice(('reno', 'cubic', 'cubic', 'bbr')), delay_ms=r.choice((1, 2, 5, 10, 30, 80)), bytes=r.choice((30_000, 120_000, 400_000)),
             sndbuf=1_000_000, for_ms=2000, local=LOCAL[kind](r), supers=r.choice(('card', 'card', 'kernel')))
    rate = r.choice((5, 20, 100, 100))
    s.update(rate=f'{rate}mbit', limit=r.choice((15_000, 40_000, 400_000)))
    if r.random() < 0.25: s['gso_max_segs'] = r.choice((2, 3, 7, 44))
    if r.random() < 0.2: s['sysctl'] = {'net.ipv4.tcp_sack': 0}
    if r.random() < 0.2: s['sysctl'] = dict(s.get('sysctl', {}), **{'net.ipv4.tcp_ecn': 1})
    if r.random() < 0.15: s['sysctl'] = dict(s.get('sysctl', {}), **{'net.ipv4.tcp_tso_win_divisor': r.choice((0, 1, 8)), 'net.ipv4.tcp_min_tso_segs': r.choice((1, 4))})
    if r.random() < 0.2: s['nodelay'] = True
    if r.random() < 0.3: s['close'] = True
    if r.random() < 0.25: s['writes'] = [[i * r.choice((3, 20, 41)), r.choice((700, 5000, 20000))] for i in range(12)]
    return s

first, last = (int(x) for x in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 160)
print(json.dumps([chance(seed) for seed in range(first, last)]))
