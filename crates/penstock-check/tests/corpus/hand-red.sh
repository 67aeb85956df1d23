#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root red limit 60000 min 15000 max 20000 avpkt 1000 burst 20 bandwidth 10mbit probability 0.02
# expect: PS150 3
