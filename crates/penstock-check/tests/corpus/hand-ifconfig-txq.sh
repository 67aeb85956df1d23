#!/bin/bash
ifconfig eth0 txqueuelen 100000
tc qdisc replace dev eth0 root tbf rate 10mbit burst 20kb latency 40ms
# expect: PS143 2
