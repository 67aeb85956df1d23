#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: cbq bandwidth 10Mbit avpkt 1000
tc class add dev eth0 parent 1: classid 1:1 cbq bandwidth 10Mbit rate 3Mbit allot 1514 prio 3 avpkt 1000 isolated
# expect: PS006 3
# expect: PS006 4
