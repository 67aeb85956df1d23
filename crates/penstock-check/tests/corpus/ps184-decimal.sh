#!/bin/bash
DEV=eth1
tc qdisc add dev $DEV root handle 1: htb default 9999
tc class add dev $DEV parent 1: classid 1:9999 htb rate 100mbit
tc filter add dev $DEV parent 1: prio 5 protocol ip u32
tc filter add dev $DEV parent 1: prio 5 handle 2: protocol ip u32 divisor 256
tc filter add dev $DEV parent 1: prio 5 protocol ip u32 ht 800:: match ip dst 192.168.1.0/24 hashkey mask 0x000000ff at 16 link 2:
for i in 8 9 10 11 12; do
  tc class add dev $DEV parent 1: classid 1:$i htb rate 1mbit
  tc filter add dev $DEV parent 1: protocol ip prio 5 u32 ht 2:$i: match ip dst 192.168.1.$i flowid 1:$i
done
# expect: PS184 10
# expect: PS250 3
