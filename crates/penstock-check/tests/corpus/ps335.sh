#!/bin/sh
# expect: PS335 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x100/0xf00 fw flowid 1:1
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 5060 -j MARK --set-xmark 0x100/0xf00
# penstock-check: PS335
iptables -t mangle -A POSTROUTING -o eth0 -m mark --mark 0x100/0xff -j DSCP --set-dscp-class EF
iptables -t mangle -A POSTROUTING -o eth0 -m mark --mark 0x100/0xf00 -j DSCP --set-dscp-class EF
