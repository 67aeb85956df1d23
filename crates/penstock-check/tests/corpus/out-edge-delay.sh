#!/bin/bash
# marks in OUTPUT with netem, the rate in bytes
# expect: PS114 10
DEV=enp1s0
IP1=192.168.122.101
if tc qdisc show dev $DEV | grep "qdisc htb 1: root"; then
   tc qdisc del dev $DEV root
fi
tc qdisc add dev $DEV handle 1: root htb default 16
tc class add dev $DEV parent 1: classid 1:15 htb rate 100Mbps
tc class add dev $DEV parent 1: classid 1:16 htb rate 1000mbit quantum 60000
tc filter add dev $DEV parent 1:0 prio 1 protocol ip handle 11 fw flowid 1:15
iptables -A OUTPUT -t mangle -d "$IP1" -j MARK --set-mark 11
