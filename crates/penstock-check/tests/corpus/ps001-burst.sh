#!/bin/bash
# tbf without burst
# expect: PS001 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 1mbit latency 50ms
