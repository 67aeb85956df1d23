#!/bin/bash
# no deletion of ingress
# expect: PS250 4
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate 1mbit burst 20k drop
