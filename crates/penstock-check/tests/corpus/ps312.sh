#!/bin/sh
# expect: PS312 7
# hide the second hop from the carrier
IF=usb0
tc qdisc del dev $IF root 2>/dev/null
tc qdisc add dev $IF root handle 1: prio
tc filter add dev $IF parent 1: protocol ip prio 1 u32 match u32 0 0 action pedit ex munge ip ttl set 65 pass
