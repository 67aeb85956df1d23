#!/bin/bash
# what exceeds goes on, and nothing is there to take it
# expect: PS250 5
# expect: PS236 6
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 5mbit burst 10k continue flowid :1
