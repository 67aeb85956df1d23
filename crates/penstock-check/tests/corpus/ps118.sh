#!/bin/sh
DEV=eth0
tc qdisc add dev $DEV root handle 1: htb default 30
tc class add dev $DEV parent 1: classid 1:1 htb rate 10mbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 7   # EF
tc class add dev $DEV parent 1:1 classid 1:30 htb rate 8mbit ceil 10mbit prio 0   # bulk
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
# expect: PS118 5
# expect: PS250 3
