#!/bin/bash
# Three classes from three arrays.
DEV=${DEV:-eth0}
LINK=100000
names=(voice web bulk)
ids=(10 20 30)
rates=(10000 60000 30000)
prios=(0 1 2)

tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc add dev "$DEV" root handle 1: htb default 30
tc class add dev "$DEV" parent 1: classid 1:1 htb rate "${LINK}kbit"
for n in "${!names[@]}"; do
    echo "class ${names[n]}: ${rates[n]}kbit"
    tc class add dev "$DEV" parent 1:1 classid "1:${ids[n]}" htb rate "${rates[n]}kbit" ceil "${LINK}kbit" prio "${prios[n]}"
    tc qdisc add dev "$DEV" parent "1:${ids[n]}" handle "${ids[n]}:" fq_codel
done
tc filter add dev "$DEV" parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc filter add dev "$DEV" parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff match ip dport 443 0xffff flowid 1:20
