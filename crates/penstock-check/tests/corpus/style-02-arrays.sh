#!/bin/bash
# expect: PS107 13
# expect: PS101 16
# expect: PS170 18
DEV=${DEV:-eth0}
LINK=10000
ids=(10 20 30)
rates=(5000 6000 3000)
names=(voice web bulk)

# What is not sorted goes to bulk.
tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc add dev "$DEV" root handle 1: htb default 40
tc class add dev "$DEV" parent 1: classid 1:1 htb rate "${LINK}kbit"
for n in 0 1 2; do
    tc class add dev "$DEV" parent 1:1 classid "1:${ids[n]}" htb rate "${rates[n]}kbit" ceil "${LINK}kbit"
done
tc filter add dev "$DEV" parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:11
