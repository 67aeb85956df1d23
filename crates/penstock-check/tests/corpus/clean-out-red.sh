#!/bin/bash
# RED after Floyd's rules
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 20kb latency 400ms
tc qdisc add dev eth0 parent 1:1 handle 10: red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10mbit probability 0.02 ecn
