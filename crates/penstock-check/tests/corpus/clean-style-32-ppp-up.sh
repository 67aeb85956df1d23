#!/bin/sh
# /etc/ppp/ip-up.d/shaper: pppd gives PPP_IFACE, PPP_LOCAL and their like.
[ -n "$PPP_IFACE" ] || exit 0
RATE_FILE=/etc/ppp/rate.$PPP_IPPARAM
RATE=2mbit
[ -r "$RATE_FILE" ] && RATE=$(cat "$RATE_FILE")
tc qdisc replace dev "$PPP_IFACE" root cake bandwidth "$RATE" pppoe-ptm nat
logger -t shaper "$PPP_IFACE shaped to $RATE"
