#!/bin/bash
# tbf with a long queue
# expect: PS141 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 512kbit burst 10k limit 300k
