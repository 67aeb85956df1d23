#!/bin/bash
# the device of the default route
DEV=$(ip route show default | awk '{print $5; exit}')
[ -n "$DEV" ] || exit 1
tc qdisc replace dev "$DEV" root fq_codel
