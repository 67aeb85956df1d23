#!/bin/bash
# the other device
# with: --dev eth0
# expect: PS242 5
tc qdisc replace dev eth1 root tbf rate 10mbit burst 20k latency 50ms
