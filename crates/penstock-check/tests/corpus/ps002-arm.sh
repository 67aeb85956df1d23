#!/bin/sh
# expect: PS002 9
IFACE="$1"
[ "$IFACE" = enp1s0 ] || exit 0
case "$2" in
  up)
    tc qdisc replace dev "$IFACE" root handle 1: htb default 10
    tc class replace dev "$IFACE" parent 1: classid 1:10 htb rate 30mbit
    tc qdisc replace dev "$IFACE" parent 1:20 fq_codel
    ;;
  down)
    tc qdisc del dev "$IFACE" root 2>/dev/null || true
    ;;
esac
