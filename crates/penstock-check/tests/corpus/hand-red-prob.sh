#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit
tc qdisc add dev eth0 parent 1:10 handle 10: red limit 120000 min 10000 max 30000 avpkt 1000 burst 17 bandwidth 2mbit probability 0.9
# expect: PS152 5
