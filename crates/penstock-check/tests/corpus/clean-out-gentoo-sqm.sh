#!/bin/sh
# like the Gentoo wiki's script
case "$1" in
    start|stop) ;;
    *) echo "usage: $0 start|stop" >&2; exit 1 ;;
esac
ext=ext0
ext_ingress=ifb0
ext_up=18mbit
ext_down=200mbit
q=1514
quantum=300
tc qdisc del dev $ext root 2>/dev/null
tc qdisc del dev $ext ingress 2>/dev/null
tc qdisc del dev $ext_ingress root 2>/dev/null
if [ "$1" = stop ]; then exit 0; fi
modprobe ifb
modprobe sch_fq_codel
ethtool -K $ext tso off gso off gro off
tc qdisc add dev $ext handle ffff: ingress
ip link set $ext_ingress up
tc filter add dev $ext parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev $ext_ingress
tc qdisc add dev $ext root handle 1: htb default 11
tc class add dev $ext parent 1: classid 1:1 htb rate $ext_up
tc class add dev $ext parent 1:1 classid 1:11 htb rate $ext_up prio 0 quantum $q
tc qdisc add dev $ext parent 1:11 fq_codel quantum $quantum limit 600 flows 1024 target 5ms interval 100ms
tc qdisc add dev $ext_ingress root handle 1: htb default 11
tc class add dev $ext_ingress parent 1: classid 1:1 htb rate $ext_down
tc class add dev $ext_ingress parent 1:1 classid 1:11 htb rate $ext_down prio 0 quantum $q
tc qdisc add dev $ext_ingress parent 1:11 fq_codel quantum $quantum ecn
