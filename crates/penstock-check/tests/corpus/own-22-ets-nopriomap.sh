#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: ets strict 3 quanta 3000 1500
# expect: PS287 3
