#!/bin/bash
set -u
DEV=lan0
tc qdisc replace dev "$DEV" root handle 1: htb default 1
tc class add dev "$DEV" parent 1: classid 1:1 htb rate 5mbit
tc qdisc add dev "$DEV" parent 1:1 fq_codel
while IFS=: read -r id ip down _; do
    [[ -z $id || $id == \#* ]] && continue
    tc class add dev "$DEV" parent 1: classid "1:$id" htb rate "$down"
    tc qdisc add dev "$DEV" parent "1:$id" handle "$id:" fq_codel
    tc filter add dev "$DEV" parent 1: protocol ip prio 1 u32 match ip dst "$ip" flowid "1:$id"
done <<'CONF'
# id:address:rate:comment
10:192.168.7.10:20mbit:desk
11:192.168.7.11:20mbit:tv
12:192.168.7.12:8mbit:guest
CONF
