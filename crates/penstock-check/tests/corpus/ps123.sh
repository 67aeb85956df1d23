#!/bin/bash
# an uplink without overhead
# expect: PS123 7
# ADSL uplink
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 900kbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 450kbit ceil 900kbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 450kbit ceil 900kbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
