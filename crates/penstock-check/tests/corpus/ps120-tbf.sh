#!/bin/bash
# tbf: a burst of less than a tick
# expect: PS120 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 200mbit burst 4k latency 50ms
