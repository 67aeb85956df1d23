#!/bin/bash
# each version's own ICMP
ip6tables -t mangle -A POSTROUTING -o eth0 -p icmpv6 -j MARK --set-mark 1
ip6tables -t mangle -A POSTROUTING -o eth0 -p ipv6-icmp --icmpv6-type echo-request -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -p icmp -j MARK --set-mark 1
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol all prio 1 handle 1 fw classid 1:1
