#!/bin/sh
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 10 u32 match ip src 0.0.0.0/0 police rate 20mbit burst 200k drop flowid :1
tc filter add dev eth0 parent ffff: protocol ip prio 20 u32 match ip src 192.0.2.0/24 police rate 2mbit burst 50k drop flowid :1
# expect: PS180 5
