#!/bin/bash
# The two bits of ECN are asked for, nothing else of the byte.
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:1 handle 10: fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x03 0x03 flowid 1:1
