#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root red limit 400000 min 30000 max 90000 avpkt 10 burst 6000 bandwidth 10mbit
# expect: PS153 3
