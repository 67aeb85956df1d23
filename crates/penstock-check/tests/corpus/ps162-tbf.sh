#!/bin/bash
# a latency in microseconds
# expect: PS162 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 10mbit burst 20k latency 50
