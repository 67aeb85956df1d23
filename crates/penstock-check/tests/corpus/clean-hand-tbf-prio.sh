#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: tbf rate 4mbit burst 8k latency 50ms
tc qdisc add dev eth0 parent 1:1 handle 10: prio bands 3
tc qdisc add dev eth0 parent 10:1 handle 101: pfifo limit 20
tc qdisc add dev eth0 parent 10:2 handle 102: sfq perturb 10 limit 50
tc qdisc add dev eth0 parent 10:3 handle 103: sfq perturb 10 limit 50
tc filter add dev eth0 parent 10: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 10:1
