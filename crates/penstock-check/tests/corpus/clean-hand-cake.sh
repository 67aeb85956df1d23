#!/bin/sh
. /etc/default/cake 2>/dev/null
WAN=${WAN:-eth0}
UP=${UP:-18mbit}
DOWN=${DOWN:-90mbit}
modprobe sch_cake 2>/dev/null
modprobe act_mirred 2>/dev/null
ip link add name ifb-$WAN type ifb 2>/dev/null || true
ip link set ifb-$WAN up
tc qdisc replace dev $WAN root cake bandwidth $UP diffserv4 nat docsis ack-filter
tc qdisc del dev $WAN ingress 2>/dev/null || true
tc qdisc add dev $WAN handle ffff: ingress
tc qdisc replace dev ifb-$WAN root cake bandwidth $DOWN besteffort nat wash docsis ingress
tc filter add dev $WAN parent ffff: protocol all matchall action mirred egress redirect dev ifb-$WAN
