#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root stab overhead 44 linklayer ethernet cake bandwidth 20mbit pppoe-ptm
# expect: PS305 3
