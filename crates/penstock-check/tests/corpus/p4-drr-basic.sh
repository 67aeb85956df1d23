#!/bin/sh
# expect: PS134 8
# expect: PS175 10
NIC=eno1
tc qdisc del dev $NIC root 2>/dev/null
tc qdisc add dev $NIC root handle 1: htb default 1
tc class add dev $NIC parent 1: classid 1:1 htb rate 300mbit
tc qdisc add dev $NIC parent 1:1 handle 2: drr
for c in 1 2 3; do
  tc class add dev $NIC parent 2: classid 2:$c drr quantum 3000
  tc qdisc add dev $NIC parent 2:$c fq_codel limit 500
done
tc filter add dev $NIC parent 2: protocol ip prio 1 basic match 'cmp(u16 at 2 layer transport eq 873) and cmp(u8 at 9 layer network eq 6)' classid 2:2
tc filter add dev $NIC parent 2: protocol ip prio 2 basic match 'cmp(u16 at 2 layer transport eq 2049) and cmp(u8 at 9 layer network eq 6)' classid 2:3
