#!/bin/bash
# delay and rate, each as root
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root netem delay 40ms
tc qdisc add dev eth0 root tbf rate 10mbit burst 32kbit latency 50ms
# expect: PS254 5
