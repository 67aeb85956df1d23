#!/bin/bash
# expect: PS192 10
# expect: PS170 10
# expect: PS001 8
tc qdisc replace dev "$dev" root handle 1: htb
case $1 in
    add|update)
        tc class replace dev "$dev" parent 1: classid 1:10 htb rate 4mbit ciel 8mbit
        # ports of IPv6
        tc filter add dev "$dev" parent 1: protocol ip prio 1 u32 match ip6 dst 2001:db8::1/128 flowid 1:10
        ;;
    delete) echo "$2" ;;
esac
