#!/bin/sh
# after sqm-scripts simplest: ingress by ifb, egress by htb + fq_codel
IFACE=pppoe-wan
IFB=ifb4$IFACE
UPLINK=9500
DOWNLINK=47500
TC=$(which tc)
IP=$(which ip)
$TC qdisc del dev $IFACE root 2>/dev/null
$TC qdisc del dev $IFACE ingress 2>/dev/null
$TC qdisc del dev $IFB root 2>/dev/null
$IP link add name $IFB type ifb 2>/dev/null
$IP link set dev $IFB up
egress() {
    $TC qdisc add dev $IFACE root handle 1: htb default 10
    $TC class add dev $IFACE parent 1: classid 1:1 htb quantum 1500 rate ${UPLINK}kbit ceil ${UPLINK}kbit overhead 34 mpu 64 linklayer ethernet
    $TC class add dev $IFACE parent 1:1 classid 1:10 htb quantum 1500 rate ${UPLINK}kbit ceil ${UPLINK}kbit prio 0 overhead 34 mpu 64 linklayer ethernet
    $TC qdisc add dev $IFACE parent 1:10 handle 110: fq_codel limit 1001 target 5ms interval 100ms noecn quantum 300 flows 1024
}
ingress() {
    $TC qdisc add dev $IFACE handle ffff: ingress
    $TC qdisc add dev $IFB root handle 1: htb default 10
    $TC class add dev $IFB parent 1: classid 1:1 htb quantum 1500 rate ${DOWNLINK}kbit ceil ${DOWNLINK}kbit
    $TC class add dev $IFB parent 1:1 classid 1:10 htb quantum 1500 rate ${DOWNLINK}kbit ceil ${DOWNLINK}kbit prio 0
    $TC qdisc add dev $IFB parent 1:10 handle 110: fq_codel limit 1001 target 5ms interval 100ms ecn quantum 300 flows 1024
    $TC filter add dev $IFACE parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev $IFB
}
egress
ingress
