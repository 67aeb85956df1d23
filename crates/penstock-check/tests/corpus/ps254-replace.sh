#!/bin/sh
DEV=eth0
tc qdisc replace dev $DEV root handle 1: htb default 20
tc class replace dev $DEV parent 1: classid 1:1 htb rate 50mbit
tc class replace dev $DEV parent 1:1 classid 1:20 htb rate 10mbit ceil 50mbit
tc qdisc replace dev $DEV root tbf rate 50mbit burst 64k latency 50ms
# expect: PS254 6
