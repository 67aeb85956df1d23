#!/bin/bash
# tbf: a burst of less than a packet
# expect: PS121 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 1mbit burst 1000 latency 50ms
