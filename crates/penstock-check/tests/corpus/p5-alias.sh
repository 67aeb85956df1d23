#!/bin/bash
# expect: PS002 5
# penstock-check: PS002
ifconfig eth0:1 192.168.5.2 netmask 255.255.255.0 up
tc qdisc replace dev eth0:1 root tbf rate 5mbit burst 32kbit latency 50ms
