#!/bin/bash
# NetworkManager's dispatcher: the device and what happened.
IFACE="$1"
ACTION="$2"
[ "$CONNECTION_ID" = "Office" ] || exit 0
case "$ACTION" in
    up|dhcp4-change)
        tc qdisc replace dev "$IFACE" root handle 1: htb default 10
        tc class replace dev "$IFACE" parent 1: classid 1:10 htb rate 95mbit
        tc qdisc replace dev "$IFACE" parent 1:10 fq_codel
        ;;
    down)
        tc qdisc del dev "$IFACE" root 2>/dev/null
        ;;
esac
exit 0
