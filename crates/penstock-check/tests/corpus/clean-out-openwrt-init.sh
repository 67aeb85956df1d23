#!/bin/sh /etc/rc.common
# an OpenWrt init script
START=99
IF_WAN=eth1
UP=38000
start() {
    logger -t shaper "starting"
    tc qdisc del dev $IF_WAN root 2>/dev/null
    tc qdisc add dev $IF_WAN root handle 1: hfsc default 30
    tc class add dev $IF_WAN parent 1: classid 1:1 hfsc sc rate ${UP}kbit ul rate ${UP}kbit
    tc class add dev $IF_WAN parent 1:1 classid 1:10 hfsc ls rate 8000kbit
    tc class add dev $IF_WAN parent 1:1 classid 1:30 hfsc ls rate 30000kbit
    tc qdisc add dev $IF_WAN parent 1:10 handle 100: fq_codel quantum 300
    tc qdisc add dev $IF_WAN parent 1:30 handle 300: fq_codel quantum 300
    tc filter add dev $IF_WAN parent 1: prio 2 protocol ip handle 0x1/0xff fw flowid 1:10
    iptables -t mangle -A POSTROUTING -o $IF_WAN -m dscp --dscp-class EF -j MARK --set-mark 0x1/0xff
}
stop() {
    tc qdisc del dev $IF_WAN root 2>/dev/null
}
start
