#!/bin/bash
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1:0 htb default 30
tc class add dev $D parent 1:0 classid 1:1 htb rate 8mbit
tc class add dev $D parent 1:1 classid 1:10 htb rate 4mbit ceil 8mbit
tc class add dev $D parent 1:1 classid 1:30 htb rate 4mbit ceil 8mbit
tc qdisc add dev $D parent 1:10 fq_codel
tc qdisc add dev $D parent 1:30 fq_codel
NETS="10.1.0.0/16 10.2.0.0/16 10.1.0.0/16"
for n in $NETS; do
  tc filter add dev $D parent 1:0 protocol ip prio 1 u32 match ip dst $n flowid 1:10
done
# expect: PS181 12
