#!/bin/bash
# An address that the environment gives is taken apart.
num() { local IFS=.; set -- $1; printf '%x' $(( ($3 % 16) * 256 + $4 )); }
tc qdisc show dev tun0 | grep -q 'htb 1:' || tc qdisc add dev tun0 root handle 1: htb
id=$(num "$ifconfig_pool_remote_ip")
tc class replace dev tun0 parent 1: classid 1:$id htb rate 10mbit
tc filter add dev tun0 parent 1: protocol ip prio 1 u32 match ip dst $ifconfig_pool_remote_ip/32 flowid 1:$id
