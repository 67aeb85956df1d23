"""Writes the scenarios: tcp_scenario_list.py > SCENARIOS.json. With two numbers, those that the seeds from the first to before the second give and no others."""
import json, random, sys
base=dict(cc='reno',rate='10mbit',limit=200000,delay_ms=20)
S=[]
def add(name,**k): S.append(dict(base,name=name,**{a.replace('__','.'):b for a,b in k.items()}))
for cc in ('reno','cubic'):
    B=dict(cc=cc,bytes=300000,for_ms=1500)
    add(f'{cc} no loss',**B)
    add(f'{cc} one lost in slow start',drop=[12],**B)
    add(f'{cc} two lost in one flight',drop=[20,25],**B)
    add(f'{cc} four in a row lost',drop=[30,31,32,33],**B)
    add(f'{cc} every third of twelve lost',drop=[24,27,30,33],**B)
    add(f'{cc} first data segment lost',drop=[0],**B)
    add(f'{cc} whole first flight lost',drop=list(range(10)),**dict(B,for_ms=3000))
    add(f'{cc} last segment lost',drop=[19],**dict(B,bytes=20*1448))
    add(f'{cc} last three lost',drop=[17,18,19],**dict(B,bytes=20*1448))
    add(f'{cc} retransmission lost',drop=[12,35],**dict(B,for_ms=2500))
    add(f'{cc} SYN lost',drop_any=[0],**dict(B,for_ms=2500))
    add(f'{cc} SYN-ACK lost',drop_ack=[0],**dict(B,for_ms=2500))
    add(f'{cc} every second ACK lost',drop_ack=list(range(1,60,2)),**B)
    add(f'{cc} a flight of ACKs lost',drop_ack=list(range(4,12)),**B)
    add(f'{cc} lost without SACK',drop=[20],sysctl={'net.ipv4.tcp_sack':0},**B)
    add(f'{cc} two lost without SACK',drop=[20,24],sysctl={'net.ipv4.tcp_sack':0},**dict(B,for_ms=2500))
    add(f'{cc} lost without timestamps',drop=[20,21],sysctl={'net.ipv4.tcp_timestamps':0},**B)
    add(f'{cc} neither SACK nor timestamps',drop=[20,22],sysctl={'net.ipv4.tcp_timestamps':0,'net.ipv4.tcp_sack':0},**dict(B,for_ms=2500))
    add(f'{cc} CE on one',ce=[30],sysctl={'net.ipv4.tcp_ecn':1},**B)
    add(f'{cc} CE on several',ce=[20,21,22,60,100],sysctl={'net.ipv4.tcp_ecn':1},**B)
    add(f'{cc} CE and a loss',ce=[20],drop=[26],sysctl={'net.ipv4.tcp_ecn':1},**B)
    add(f'{cc} small receive buffer',rcvbuf=8192,**dict(B,for_ms=1500))
    add(f'{cc} receive buffer and a loss',rcvbuf=16384,drop=[15],**B)
    add(f'{cc} small send buffer',sndbuf=16384,drop=[15],**B)
    add(f'{cc} reader comes late',read_after_ms=300,rcvbuf=16384,**B)
    add(f'{cc} queue of 30 overrun',**dict(B,limit=45420,bytes=10**9,for_ms=700))
    add(f'{cc} queue of 10 overrun',**dict(B,limit=15140,bytes=10**9,for_ms=1000))
    add(f'{cc} queue of 5 at 1mbit',**dict(B,rate='1mbit',limit=7570,delay_ms=2,bytes=10**9,for_ms=2500))
    add(f'{cc} pauses',writes=[[0,30000],[300,30000],[1300,30000]],**dict(B,for_ms=2000))
    add(f'{cc} small writes, Nagle',writes=[[i*4+1,100] for i in range(60)],**dict(B,for_ms=600))
    add(f'{cc} small writes, no delay',nodelay=True,writes=[[i*4+1,100] for i in range(60)],**dict(B,for_ms=600))
    add(f'{cc} request of 3 segments, last lost',drop=[2],writes=[[0,4344],[500,4344]],**dict(B,for_ms=1000))
for name,late in (('one 5 ms late',{14:5}),('one 30 ms late',{14:30}),('three late',{14:8,15:8,16:8}),('every fourth 2 ms late',{i:2 for i in range(12,60,4)})):
    for cc in('reno','cubic'):
        s=dict(name=f'{cc} {name}',cc=cc,bytes=300000,delay_ms=20,back='100mbit',for_ms=800,late={str(k):v for k,v in late.items()}); S.append(s)
for cc in ('westwood','bbr'):
    B=dict(cc=cc,bytes=300000,for_ms=1500)
    add(f'{cc} no loss',**B)
    add(f'{cc} one lost in slow start',drop=[12],**B)
    add(f'{cc} four in a row lost',drop=[30,31,32,33],**B)
    add(f'{cc} whole first flight lost',drop=list(range(10)),**dict(B,for_ms=3000))
    add(f'{cc} queue of 30 overrun',**dict(B,limit=45420,bytes=10**9,for_ms=700))

def chance(seed):
    """One scenario by dice."""
    r=random.Random(seed)
    s=dict(name=f'seed {seed}',cc=r.choice(('reno','cubic')),delay_ms=r.choice((1,2,5,10,20,20,40,75,150,300)))
    mbit=r.choice((0.5,1,2,5,10,10,20,50,100,300,1000))
    s['rate']=f'{mbit}mbit' if mbit>=1 else '500kbit'
    mtu=1500
    if r.random()<0.12: s['mtu']=mtu=r.choice((576,1000,1400,1492))
    s['limit']=r.choice((4,6,10,20,40,80,200))*(mtu+14)
    window=mbit*1e6/8*(s['delay_ms']/1000)
    n=int(min(700,max(20,r.choice((0.3,1,3))*window/mtu*3,r.choice((20,60,200,400))),mbit*1e6/8*2/mtu))
    s['bytes']=n*(mtu-52)+r.choice((0,0,1,500))
    s['for_ms']=int(min(3000,400+s['delay_ms']*12+s['bytes']*8/mbit/1000*1.5))
    kind=r.choice(('none','few','random','random','burst','periodic','again','acks','acks','ecn','late','twice','overrun','syn','tail'))
    if kind=='few': s['drop']=sorted(r.sample(range(n),r.choice((1,2,3))))
    if kind=='random': p=r.choice((0.01,0.03,0.08)); s['drop']=[i for i in range(n+50) if r.random()<p]
    if kind=='burst': a=r.randrange(n); s['drop']=list(range(a,a+r.choice((2,5,9,20))))
    if kind=='periodic': a=r.choice((7,13,31)); s['drop']=list(range(r.randrange(a),n,a))
    if kind=='again': a=r.randrange(n); s['drop']=[a]+list(range(a+r.choice((3,8,15,25)),a+40,r.choice((1,2,5))))
    if kind=='acks': p=r.choice((0.1,0.3,0.6)); s['drop_ack']=[i for i in range(1,n) if r.random()<p]
    if kind=='ecn': s['sysctl']={'net.ipv4.tcp_ecn':1}; p=r.choice((0.01,0.1)); s['ce']=[i for i in range(n) if r.random()<p]
    if kind=='late': d=r.choice((1,3,10,40)); p=r.choice((0.02,0.1,0.3)); s['late']={str(i):d for i in range(n) if r.random()<p} or {'5':d}
    if kind=='twice': p=r.choice((0.02,0.2)); s['twice']=[i for i in range(n) if r.random()<p]
    if kind=='overrun': s['limit']=r.choice((3,5,8,15))*(mtu+14)
    if kind=='syn': s[r.choice(('drop_any','drop_ack'))]=r.choice(([0],[0,1])); s['for_ms']+=3500
    if kind=='tail': a=(s['bytes']-1)//(mtu-52); s['drop']=list(range(max(0,a-r.choice((0,1,3))),a+r.choice((1,2)))); s['for_ms']+=800
    more=r.choice(('','','','','rcvbuf','sndbuf','pauses','small','read','late reader','options','close','back','reply','chunk'))
    if more=='rcvbuf': s['rcvbuf']=r.choice((4096,8192,20000,60000))
    if more=='sndbuf': s['sndbuf']=r.choice((8192,16384,30000,60000))
    if more=='pauses':
        k=r.choice((2,4)); gap=r.choice((50,250,700)); s['writes']=[[i*gap,s['bytes']//k] for i in range(k)]; s['for_ms']+=gap*k
    if more=='small': s['writes']=[[i*r.choice((1,7,30)),r.choice((1,100,700,1448,2000))] for i in range(40)]; s['writes'].sort(); s['nodelay']=r.random()<0.5; s['for_ms']=max(s['for_ms'],1500)
    if more=='read': s['read']=[r.choice((1000,5000,30000)),r.choice((1,5,20))]; s['rcvbuf']=r.choice((16384,60000))
    if more=='late reader': s['read_after_ms']=r.choice((100,400)); s['for_ms']+=500; s['rcvbuf']=r.choice((8192,16384,60000))
    if more=='options':
        for k in r.sample(('sack','timestamps','window_scaling'),r.choice((1,2))): s.setdefault('sysctl',{})['net.ipv4.tcp_'+k]=0
    if more=='close': s['close']=True
    if more=='back': s['back_writes']=[[0,r.choice((3000,50000,200000))]]
    if more=='reply': s['reply']=[r.choice((1000,10000)),r.choice((10,500,3000))]
    if more=='chunk': s['chunk']=r.choice((500,1448,4096,10000))
    # A reader's pause and the creeping clock: no two things at one moment.
    s['back']=s['rate'] if mbit>=100 else '100mbit'
    return s

# Those whose recording is short, and some longer ones.
SEEDS=[int(n) for n in '''1 2 3 4 6 7 8 9 10 11 12 14 15 17 18 19 21 22 23 24 26 27 28 29 30 31 32 33 34 35 36 38 40 41 42 43 44 46 47 49 51 52 54 55 56 58 59 61 62 63 65 66 68 69 70 72 73 74 75 76 77 78 79 81 82 83 84 85 86 88 89 90 91 92 93 94 95 97 98 99 100 103 104 105 106 107 109 110 112 113 114 115 116 118 200 201 203 204 205 206 207 209 210 211 212 213 214 215 216 217 218 219 221 222 224 226 227 228 231 232 234 235 236 237 238 239 240 241 242 243 246 247 248 250 251 252 254 256 257 258 259 260 261 263 264 265 268 269'''.split()]
if len(sys.argv)<3: S+=[chance(n) for n in SEEDS]
else: S=[chance(n) for n in range(int(sys.argv[1]),int(sys.argv[2]))]
print(json.dumps(S))
