#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root red limit 400000 min 90000 max 30000 avpkt 1000 burst 55 bandwidth 10mbit probability 0.02
# expect: PS001 3
