#!/bin/sh
# a hook of Debian's ifupdown
# /etc/network/if-up.d/shaping
[ "$IFACE" = lo ] && exit 0
IFACE=${IFACE:-eth0}
/sbin/tc qdisc replace dev "$IFACE" root handle 1: tbf rate 18mbit burst 32kb latency 30ms
/sbin/tc qdisc replace dev "$IFACE" parent 1:1 handle 10: fq_codel
exit 0
