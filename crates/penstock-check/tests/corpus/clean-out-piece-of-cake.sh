#!/bin/sh
# cake both ways
IFACE=eth0
IFB=ifb4eth0
ip link add name $IFB type ifb 2>/dev/null
ip link set dev $IFB up
tc qdisc del dev $IFACE root 2>/dev/null
tc qdisc add dev $IFACE root cake bandwidth 18000kbit besteffort nat dual-srchost overhead 22 mpu 64
tc qdisc del dev $IFACE handle ffff: ingress 2>/dev/null
tc qdisc add dev $IFACE handle ffff: ingress
tc qdisc del dev $IFB root 2>/dev/null
tc qdisc add dev $IFB root cake bandwidth 90000kbit besteffort nat dual-dsthost ingress wash overhead 22 mpu 64
tc filter add dev $IFACE parent ffff: matchall action mirred egress redirect dev $IFB
