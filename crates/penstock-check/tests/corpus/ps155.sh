#!/bin/bash
# red that takes 10mbit
# expect: PS155 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 20k latency 500ms
tc qdisc add dev eth0 parent 1:1 handle 10: red limit 200000 min 15000 max 45000 avpkt 1000 burst 20 probability 0.02
