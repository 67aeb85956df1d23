#!/bin/bash
# what fireqos types for two interfaces
exec 2>&1
tc=/sbin/tc
world_in=ifb0
dsl=dsl0
ip link add ifb0 type ifb 2>/dev/null || true
ip link set dev ifb0 up
$tc qdisc del dev $dsl ingress >/dev/null 2>&1
$tc qdisc del dev $dsl root >/dev/null 2>&1
$tc qdisc del dev ifb0 root >/dev/null 2>&1
$tc qdisc add dev $dsl ingress
$tc filter add dev $dsl parent ffff: protocol all prio 39999 u32 match u32 0 0 action mirred egress redirect dev ifb0
$tc qdisc add dev ifb0 root handle 1: stab linklayer adsl overhead 26 mtu 1492 htb default 5000 r2q 8
$tc class add dev ifb0 parent 1: classid 1:1 htb rate 8000kbit ceil 8000kbit
$tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 800kbit ceil 8000kbit prio 0 quantum 1492
$tc qdisc add dev ifb0 parent 1:10 handle 10: sfq perturb 10
$tc class add dev ifb0 parent 1:1 classid 1:5000 htb rate 4000kbit ceil 8000kbit prio 1 quantum 1492
$tc qdisc add dev ifb0 parent 1:5000 handle 5000: sfq perturb 10
$tc filter add dev ifb0 parent 1: protocol ip prio 10 u32 match ip protocol 17 0xff match ip sport 5060 0xffff flowid 1:10
$tc filter add dev ifb0 parent 1: protocol ip prio 10 u32 match ip protocol 1 0xff flowid 1:10
$tc qdisc add dev $dsl root handle 1: stab linklayer adsl overhead 26 mtu 1492 htb default 5000 r2q 8
$tc class add dev $dsl parent 1: classid 1:1 htb rate 800kbit ceil 800kbit
$tc class add dev $dsl parent 1:1 classid 1:10 htb rate 200kbit ceil 800kbit prio 0 quantum 1492
$tc qdisc add dev $dsl parent 1:10 handle 10: sfq perturb 10
$tc class add dev $dsl parent 1:1 classid 1:5000 htb rate 600kbit ceil 800kbit prio 1 quantum 1492
$tc qdisc add dev $dsl parent 1:5000 handle 5000: sfq perturb 10
$tc filter add dev $dsl parent 1: protocol ip prio 10 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:10
