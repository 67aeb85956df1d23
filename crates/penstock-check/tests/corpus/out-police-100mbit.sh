#!/bin/bash
# 10k are less than a millisecond at 100 Mbit/s
# expect: PS235 8
IFACE=eth0
RATE=100mbit
tc qdisc del dev $IFACE ingress 2>/dev/null
tc qdisc add dev $IFACE handle ffff: ingress
tc filter add dev $IFACE parent ffff: protocol all prio 1 matchall action police rate $RATE burst 10k conform-exceed drop
