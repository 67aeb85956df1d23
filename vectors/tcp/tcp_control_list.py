"""Writes scenarios of the congestion controls: tcp_control_list.py > SCENARIOS.json. With names behind it, those of these controls alone."""
import json, random, sys

# cdg's dice are the kernel's own: with 0 they never say yes; with 2048, and a segment of queue that lasts 6 ms, as good as always, and to the
# noise of some microseconds as good as never.
CONTROLS='bic cdg highspeed htcp hybla illinois lp nv scalable vegas veno westwood yeah'.split()
S=[]
def chance(cc,n):
    """The n-th of a control, by dice."""
    r=random.Random(f'{cc} {n}')
    kind=('overrun','few','random','overrun','ecn','pauses','long','overrun')[n]
    mbit=r.choice((2,5,10,20,50))
    delay=r.choice((5,20,40,75,150))
    if n in (3,7): mbit,delay=r.choice((20,50,100)),r.choice((20,40,75))
    bdp=mbit*1e6/8*delay/1e3/1514
    s=dict(name=f'{cc} {n}',cc=cc,rate=f'{mbit}mbit',delay_ms=delay,back='1000mbit')
    s['limit']=int(max(8,r.choice((0.3,0.6,1,2))*bdp))*1514
    total=r.choice((500,700,900))
    s['bytes']=10**9
    s['for_ms']=int(min(6000,max(400,total*12.112/mbit+3*delay)))
    if kind=='few': s['drop']=sorted(r.sample(range(20,total//2),3))
    if kind=='random': p=r.choice((0.004,0.01)); s['drop']=[i for i in range(total+200) if r.random()<p]
    if kind=='ecn': s['sysctl']={'net.ipv4.tcp_ecn':1}; s['ce']=sorted(r.sample(range(10,total//2),4))
    if kind=='pauses':
        gap=r.choice((400,900)); s['writes']=[[i*gap,total//4*1448] for i in range(4)]; del s['bytes']; s['for_ms']=gap*3+800
        s['drop']=[r.randrange(30,100)]
    if kind=='long': s['drop']=[15,16]; s['rate']='2mbit'; s['for_ms']=5500; s['limit']=60*1514
    if kind=='overrun' and n==0: s['drop_ack']=[i for i in range(1,total) if r.random()<0.2]
    if cc=='lp': s.setdefault('sysctl',{})['net.ipv4.tcp_timestamps']=2
    if cc=='cdg': s['module']={'backoff_factor':2048 if n%2 else 0}
    if cc=='cdg' and n%2: s['rate'],s['limit'],s['for_ms']='2mbit',r.choice((20,40,80))*1514,4000
    if cc=='bic' and n==7: s['module']={'max_increment':32,'beta':700}
    if cc=='htcp' and n==7: s['module']={'use_bandwidth_switch':0}
    if cc=='hybla' and n==7: s['module']={'rtt0':10}
    return s
# Long recordings are left out; cdg 3 and 5, where the dice fell on a small gradient; illinois 3, of which two recordings are not the same.
KEPT=dict(bic='124567',cdg='012467',highspeed='01245',htcp='02457',hybla='13456',illinois='02456',lp='01234567',nv='01234',scalable='12456',
          vegas='012457',veno='01245',westwood='12346',yeah='12567')
for cc in sys.argv[1:] or CONTROLS: S+=[chance(cc,int(n)) for n in KEPT[cc]]
print(json.dumps(S))
