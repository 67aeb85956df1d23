#!/bin/sh
# values that no kernel takes, whatever the machine has
# expect: PS004 6
# expect: PS004 7
# expect: PS004 8
ip rule add fwmark 6 goto 400 pref 600
ip rule add from 192.0.2.0/24 tos 0x11 lookup 100
ip addr add ff05::7/64 dev eth0
tc qdisc replace dev eth0 root fq_codel
