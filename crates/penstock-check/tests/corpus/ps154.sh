#!/bin/bash
# red with a second in its queue
# expect: PS154 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: tbf rate 256kbit burst 20k latency 500ms
tc qdisc add dev eth0 parent 1:1 handle 10: red limit 400000 min 40000 max 120000 avpkt 1000 burst 55 probability 0.02 bandwidth 256kbit
