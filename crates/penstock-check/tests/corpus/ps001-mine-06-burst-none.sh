#!/bin/sh
# One limit for a guest card, below a prio qdisc.
IF=eth2
tc qdisc del dev $IF root 2>/dev/null
tc qdisc add dev $IF root handle 1: tbf rate 6mbit latency 40ms
tc qdisc add dev $IF parent 1:1 handle 10: prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
tc qdisc add dev $IF parent 10:1 handle 101: pfifo limit 50
tc qdisc add dev $IF parent 10:2 handle 102: sfq perturb 10
tc qdisc add dev $IF parent 10:3 handle 103: sfq perturb 10
tc filter add dev $IF parent 10: protocol ip prio 1 u32 match ip protocol 1 0xff flowid 10:1
tc filter add dev $IF parent 10: protocol ip prio 2 u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33 flowid 10:1
# expect: PS001 5
