#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20 r2q 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 50mbit ceil 100mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 50mbit ceil 100mbit
tc qdisc add dev eth0 parent 1:10 sfq perturb 10
tc qdisc add dev eth0 parent 1:20 sfq perturb 10
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip sport 22 0xffff match ip protocol 6 0xff flowid 1:10
# expect: PS110 5
# expect: PS110 6
