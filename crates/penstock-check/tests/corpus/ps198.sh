#!/bin/bash
# IPv4 in frames with two tags
# expect: PS198 8
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
# One tag is beside the packet.
tc filter add dev eth0 parent ffff: protocol 802.1q prio 1 u32 match ip dst 10.0.1.0/24 police rate 1mbit burst 20k drop flowid :1
tc filter add dev eth0 parent ffff: protocol 802.1ad prio 2 u32 match ip dst 10.0.2.0/24 police rate 1mbit burst 20k drop flowid :1
