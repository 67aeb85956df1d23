#!/bin/bash
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default 20
tc class add dev $D parent 1: classid 1:1 htb rate 1mbit
tc class add dev $D parent 1:1 classid 1:10 htb rate 500kbit ceil 1mbit
tc class add dev $D parent 1:1 classid 1:20 htb rate 500kbit ceil 1mbit
tc qdisc add dev $D parent 1:10 handle 10: sfq
tc qdisc add dev $D parent 1:20 handle 20: sfq perturb 10 limit 1000 depth 1000
tc filter add dev $D parent 1: protocol ip prio 1 u32 match ip dsfield 0x10 0x1e flowid 1:10
# expect: PS146 8
# expect: PS148 9
