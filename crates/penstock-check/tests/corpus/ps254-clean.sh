#!/bin/bash
# delay and rate, one below the other; then another experiment
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: netem delay 40ms
tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 10mbit burst 32kbit latency 50ms
iperf3 -c 10.0.0.2
tc qdisc del dev eth0 root
tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 32kbit latency 50ms
iperf3 -c 10.0.0.2
tc qdisc replace dev eth0 root fq_codel
