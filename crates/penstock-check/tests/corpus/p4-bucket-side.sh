#!/bin/sh
# expect: PS184 10
D=eth1
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default 2
tc class add dev $D parent 1: classid 1:2 htb rate 50mbit
tc class add dev $D parent 1: classid 1:5 htb rate 5mbit
tc filter add dev $D parent 1:0 prio 5 protocol ip u32
tc filter add dev $D parent 1:0 prio 5 handle 3: protocol ip u32 divisor 256
tc filter add dev $D parent 1:0 protocol ip prio 5 u32 ht 3:7b: match ip src 10.1.0.123 flowid 1:5
tc filter add dev $D parent 1:0 protocol ip prio 5 u32 ht 800:: match ip dst 10.1.0.0/24 hashkey mask 0x000000ff at 16 link 3:
