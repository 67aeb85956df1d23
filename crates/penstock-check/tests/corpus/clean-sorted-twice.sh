#!/bin/sh
# The outer filter only hands on to a prio whose own filter decides.
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio bands 4 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 198.51.100.0/24 flowid 1:2
tc qdisc add dev eth0 parent 1:2 handle 20: prio bands 3 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
tc filter add dev eth0 parent 20: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 20:1
tc filter add dev eth0 parent 20: protocol ip prio 2 u32 match ip dst 198.51.100.0/24 flowid 20:2
