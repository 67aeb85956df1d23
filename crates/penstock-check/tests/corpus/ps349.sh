#!/bin/sh
# expect: PS349 4
# expect: PS349 7
tc qdisc replace dev wlan0 root netem delay 40ms 10ms loss 1% limit 0
tc qdisc replace dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc qdisc add dev eth0 parent 1:1 pfifo limit 0
