#!/bin/bash
# RED with min next to max
# expect: PS150 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root red limit 400000 min 30000 max 40000 avpkt 1000 burst 40 bandwidth 10mbit probability 0.02
