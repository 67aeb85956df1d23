#!/bin/bash
# tbf with room for less than a packet
# expect: PS142 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 1mbit burst 10k limit 1000
