#!/bin/bash
# expect: PS142 4
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 256kbit burst 1540 latency 1ms
