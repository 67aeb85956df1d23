#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
tc qdisc add dev eth0 parent 1:10 handle 10: red limit 60000 min 15000 max 60000 avpkt 1000 burst 30 bandwidth 10mbit probability 0.02
# expect: PS151 5
