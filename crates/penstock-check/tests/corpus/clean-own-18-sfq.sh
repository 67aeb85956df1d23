#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: tbf rate 2mbit burst 10kb latency 100ms
tc qdisc add dev eth0 parent 1:1 handle 10: sfq perturb 10
