#!/bin/sh
ip link set dev eth0 mtu 9000
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 u32 match u32 0 0 police rate 100mbit burst 200k drop flowid :1
# expect: PS244 4
# expect: PS250 3
