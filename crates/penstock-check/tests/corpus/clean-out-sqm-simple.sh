#!/bin/sh
# like sqm-scripts' simple.qos: egress htb with three tiers, ifb for ingress
IFACE=pppoe-wan
UPLINK=9000
DOWNLINK=45000
TC=/sbin/tc
DEV=ifb4$IFACE
CEIL=$UPLINK
OVERHEAD=34
get_mtu() { echo 1500; }
get_quantum() { case "$1" in *) if [ "$1" -gt 8000 ]; then echo 3028; else echo 1514; fi ;; esac; }
do_egress() {
    PRIO_RATE=$((CEIL / 3))
    BE_RATE=$((CEIL / 6))
    BK_RATE=$((CEIL / 6))
    BE_CEIL=$((CEIL - 16))
    LQ="quantum $(get_quantum $CEIL)"
    $TC qdisc del dev $IFACE root 2> /dev/null
    $TC qdisc add dev $IFACE root handle 1: htb default 12
    $TC class add dev $IFACE parent 1: classid 1:1 htb $LQ rate ${CEIL}kbit ceil ${CEIL}kbit overhead $OVERHEAD
    $TC class add dev $IFACE parent 1:1 classid 1:10 htb $LQ rate ${CEIL}kbit ceil ${CEIL}kbit prio 0 overhead $OVERHEAD
    $TC class add dev $IFACE parent 1:1 classid 1:11 htb $LQ rate 128kbit ceil ${PRIO_RATE}kbit prio 1 overhead $OVERHEAD
    $TC class add dev $IFACE parent 1:1 classid 1:12 htb $LQ rate ${BE_RATE}kbit ceil ${BE_CEIL}kbit prio 2 overhead $OVERHEAD
    $TC class add dev $IFACE parent 1:1 classid 1:13 htb $LQ rate ${BK_RATE}kbit ceil ${BE_CEIL}kbit prio 3 overhead $OVERHEAD
}
do_egress_sane() {
    $TC qdisc del dev $IFACE root 2> /dev/null
    $TC qdisc add dev $IFACE root handle 1: htb default 12
    $TC class add dev $IFACE parent 1: classid 1:1 htb rate ${CEIL}kbit ceil ${CEIL}kbit overhead $OVERHEAD
    $TC class add dev $IFACE parent 1:1 classid 1:11 htb rate 1000kbit ceil $((CEIL / 3))kbit prio 1 quantum 1514 overhead $OVERHEAD
    $TC class add dev $IFACE parent 1:1 classid 1:12 htb rate $((CEIL / 6))kbit ceil $((CEIL - 16))kbit prio 2 quantum 1514 overhead $OVERHEAD
    $TC class add dev $IFACE parent 1:1 classid 1:13 htb rate $((CEIL / 6))kbit ceil $((CEIL - 16))kbit prio 3 quantum 1514 overhead $OVERHEAD
    for i in 11 12 13; do
        $TC qdisc add dev $IFACE parent 1:$i handle ${i}0: fq_codel limit 1001 target 5ms interval 100ms quantum 300 noecn
    done
    $TC filter add dev $IFACE parent 1:0 protocol ip prio 1 u32 match ip tos 0x10 0xfc flowid 1:11
    $TC filter add dev $IFACE parent 1:0 protocol ip prio 2 u32 match ip tos 0x20 0xfc flowid 1:13
    $TC filter add dev $IFACE parent 1:0 protocol ip prio 3 u32 match ip tos 0xb8 0xfc flowid 1:11
}
do_ingress() {
    ip link show $DEV >/dev/null 2>&1 || ip link add name $DEV type ifb
    ip link set dev $DEV up
    $TC qdisc del dev $IFACE handle ffff: ingress 2> /dev/null
    $TC qdisc add dev $IFACE handle ffff: ingress
    $TC qdisc del dev $DEV root 2> /dev/null
    $TC qdisc add dev $DEV root handle 1: htb default 10
    $TC class add dev $DEV parent 1: classid 1:1 htb rate ${DOWNLINK}kbit ceil ${DOWNLINK}kbit overhead $OVERHEAD
    $TC class add dev $DEV parent 1:1 classid 1:10 htb rate ${DOWNLINK}kbit ceil ${DOWNLINK}kbit prio 0 overhead $OVERHEAD
    $TC qdisc add dev $DEV parent 1:10 handle 110: fq_codel limit 1001 target 5ms interval 100ms ecn
    $TC filter add dev $IFACE parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev $DEV
}
do_egress_sane
do_ingress
