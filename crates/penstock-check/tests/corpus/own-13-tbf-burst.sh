#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 100mbit burst 1kb latency 50ms
# expect: PS121 3
