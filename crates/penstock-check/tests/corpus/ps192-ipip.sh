#!/bin/sh
# an IPIP tunnel has no IPv6 in it
ip tunnel add tun4 mode ipip remote 203.0.113.5 local 198.51.100.5
ip link set tun4 up
tc qdisc replace dev tun4 root handle 1: htb default 20
tc class add dev tun4 parent 1: classid 1:1 htb rate 10mbit
tc class add dev tun4 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit
tc class add dev tun4 parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit
tc filter add dev tun4 parent 1: protocol ipv6 prio 1 u32 match ip6 protocol 17 0xff flowid 1:10
tc filter add dev tun4 parent 1: protocol ip prio 2 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:10
# expect: PS192 9
