#!/bin/sh
# IPv6 by a tunnel of a broker: the tunnel's own device is shaped.
TUN=he6
ip tunnel add $TUN mode sit remote 203.0.113.9 local 198.51.100.7 ttl 255
ip link set $TUN up mtu 1480
ip -6 addr add 2001:db8:77::2/64 dev $TUN
ip -6 route replace default dev $TUN
tc qdisc del dev $TUN root 2>/dev/null
tc qdisc add dev $TUN root handle 1: htb default 20
tc class add dev $TUN parent 1: classid 1:1 htb rate 8mbit
tc class add dev $TUN parent 1:1 classid 1:10 htb rate 2mbit ceil 8mbit prio 0
tc class add dev $TUN parent 1:1 classid 1:20 htb rate 6mbit ceil 8mbit prio 1
tc filter add dev eth0 parent 1: protocol ipv6 prio 1 u32 match ip6 protocol 58 0xff flowid 1:10
tc filter add dev $TUN parent 1: protocol ipv6 prio 2 u32 match ip6 protocol 6 0xff match ip6 dport 22 0xffff flowid 1:10
# expect: PS002 13
