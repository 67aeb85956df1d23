#!/bin/bash
# red with packets that are too large
# expect: PS153 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 20k latency 100ms
tc qdisc add dev eth0 parent 1:1 handle 10: red limit 800000 min 60000 max 180000 avpkt 9000 burst 20 probability 0.02 bandwidth 10mbit
