"""Writes the scenarios of local_drops.jsonl, in which the sender's own queue or policer drops: local_drop_list.py > SCENARIOS.json.
With two numbers, those that the seeds from the first to before the second give and no others."""
import json, random, sys

# The sender's own queue behind a shaper of this rate, of so many packets.
def pfifo(rate, n): return [f'qdisc add dev va root handle 1: tbf rate {rate} burst 1514 limit 100000', f'qdisc add dev va parent 1: pfifo limit {n}']
def tbf(rate, n): return [f'qdisc add dev va root tbf rate {rate} burst 1514 limit {n * 1514}']
def prio(rate, n): return [f'qdisc add dev va root handle 1: tbf rate {rate} burst 1514 limit 100000', 'qdisc add dev va parent 1: handle 2: prio',
                           f'qdisc add dev va parent 2:2 pfifo limit {n}']
def htb(rate, n): return ['qdisc add dev va root handle 1: htb default 10', f'class add dev va parent 1: classid 1:10 htb rate {rate} burst 1514 cburst 1514',
                          f'qdisc add dev va parent 1:10 pfifo limit {n}']
def htb_two(rate, n): return ['qdisc add dev va root handle 1: htb default 20', f'class add dev va parent 1: classid 1:1 htb rate {rate} burst 3028 cburst 3028',
                              f'class add dev va parent 1:1 classid 1:10 htb rate 200kbit ceil {rate} burst 1514 cburst 1514 prio 1',
                              f'class add dev va parent 1:1 classid 1:20 htb rate 300kbit ceil {rate} burst 1514 cburst 1514 prio 0',
                              f'qdisc add dev va parent 1:10 bfifo limit {n * 1514}', f'qdisc add dev va parent 1:20 pfifo limit {n}',
                              'filter add dev va parent 1: protocol ip u32 match ip protocol 6 0xff flowid 1:10']
def fq_codel(rate, n): return [f'qdisc add dev va root handle 1: tbf rate {rate} burst 1514 limit 100000',
                               f'qdisc add dev va parent 1: fq_codel limit {n} flows 4096 target 2ms interval 20ms noecn']
def fq_codel_ecn(rate, n): return [f'qdisc add dev va root handle 1: tbf rate {rate} burst 1514 limit 100000',
                                   f'qdisc add dev va parent 1: fq_codel limit {n} flows 4096 target 2ms interval 20ms ecn']
def sfq(rate, n): return [f'qdisc add dev va root handle 1: tbf rate {rate} burst 1514 limit 100000', f'qdisc add dev va parent 1: sfq limit {max(n, 2)} depth {max(n, 2)} flows 8192 divisor 65536']
def head_drop(rate, n): return [f'qdisc add dev va root handle 1: tbf rate {rate} burst 1514 limit 100000', f'qdisc add dev va parent 1: pfifo_head_drop limit {n}']
def police(rate, n): return ['qdisc add dev va clsact', f'filter add dev va egress protocol ip matchall action police rate {rate} burst {n * 1514} drop']
def police_tbf(rate, n): return pfifo('20mbit', 40) + police(rate, n)
LOCAL = dict(pfifo=pfifo, tbf=tbf, prio=prio, htb=htb, htb_two=htb_two, fq_codel=fq_codel, fq_codel_ecn=fq_codel_ecn, sfq=sfq, head_drop=head_drop,
             police=police, police_tbf=police_tbf)

def scenario(name, kind, rate, n, **more):
    # All is written at once: a writer who is woken in between would have ksoftirqd do the rest (see tcp_scenarios.py).
    s = dict(name=name, cc='reno', delay_ms=20, bytes=120_000, sndbuf=400_000, for_ms=2500, local=LOCAL[kind](rate, n))
    # Two frames that arrive at one moment would be answered before either is read.
    s.update(rate='100mbit', limit=400_000)
    return dict(s, **more)

S = []
for kind in LOCAL:
    for cc in ('reno', 'cubic', 'bbr'):
        S.append(scenario(f'{cc} {kind} of 1 at 2mbit', kind, '2mbit', 1, cc=cc, bytes=100_000, delay_ms=5))
        S.append(scenario(f'{cc} {kind} of 3 at 5mbit', kind, '5mbit', 3, cc=cc, delay_ms=1, for_ms=1500, udp=[700, 2_111, 20]))
    S.append(scenario(f'{kind} beside datagrams', kind, '1mbit', 6, bytes=60_000, udp=[1000, 11_237, 30]))
    S.append(scenario(f'{kind} full of datagrams', kind, '1mbit', 8, cc='cubic', bytes=40_000, udp=[1200, 5_113, 100], for_ms=6000))
    S.append(scenario(f'{kind} without SACK', kind, '3mbit', 2, delay_ms=2, udp=[300, 3_331, 0], sysctl={'net.ipv4.tcp_sack': 0}))
    S.append(scenario(f'{kind} in pieces', kind, '1mbit', 2, writes=[[i * 37, 7000] for i in range(12)], udp=[900, 8_887, 7]))

def chance(seed):
    """One scenario by dice."""
    r = random.Random(seed)
    kind = r.choice(list(LOCAL))
    kbit = r.choice((300, 700, 1000, 2000, 3000, 5000, 10000))
    s = scenario(f'seed {seed}', kind, f'{kbit}kbit', r.choice((1, 1, 2, 2, 3, 4, 5, 8, 12, 20)), cc=r.choice(('reno', 'cubic', 'cubic', 'bbr')))
    s['delay_ms'] = r.choice((1, 1, 2, 5, 10, 20, 50, 120))
    s['bytes'] = min(130_000, max(20_000, kbit * 100))
    s['for_ms'] = 3000
    if r.random() < 0.6:
        size = r.choice((100, 400, 1000, 1400))
        s['udp'] = [size, round(size * 8000 / kbit / r.choice((0.3, 0.6, 0.9, 1.1, 2))), r.choice((0, 5, 50, 200))]
    if r.random() < 0.15: s['sysctl'] = {'net.ipv4.tcp_sack': 0}
    if r.random() < 0.15: s['sysctl'] = dict(s.get('sysctl', {}), **{'net.ipv4.tcp_ecn': 1})
    if r.random() < 0.15: s['nodelay'] = True
    if r.random() < 0.15: s['close'] = True
    if r.random() < 0.2: s.update(rate=f'{max(kbit // 2, 200)}kbit', limit=r.choice((4, 10, 30)) * 1514)
    if r.random() < 0.2: s['writes'] = [[round(i * r.uniform(5, 80)), r.choice((100, 1500, 5000, 20000))] for i in range(10)]
    return s

def recorded(seed):
    """The same, as local_drops.jsonl has it."""
    s = chance(seed)
    # At 2 ms an ACK and the timer of va's tbf are due at one nanosecond, and the recording's clock, which creeps, decides which comes first.
    if seed == 12: s['delay_ms'] = 2.001
    return s

# Seeds that showed something new when they were tried.
FOUND = (1004, 1028, 1071, 1087, 1089, 2012, 2022, 2053, 2061, 2087, 2103, 2117)

if len(sys.argv) > 2: S = [chance(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))]
else: S += [recorded(seed) for seed in (*range(40), *FOUND)]
print(json.dumps(S))
