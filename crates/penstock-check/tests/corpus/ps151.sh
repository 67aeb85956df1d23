#!/bin/bash
# red with its limit at max
# expect: PS151 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 20k latency 100ms
tc qdisc add dev eth0 parent 1:1 handle 10: red limit 90000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02 bandwidth 10mbit
