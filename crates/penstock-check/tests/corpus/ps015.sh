#!/bin/sh
# penstock-check: PS015 names a letter away from one that the script sets; what the environment gives is no mistake.
# expect: PS015 10
# expect: PS015 13
# expect: PS015 14
DEV=eth0
OPTIONS="nat dual-srchost"
UPLINK=18mbit
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root cake bandwidth $UPLINK $OPTOINS
tc qdisc del dev $lan_dev root 2>/dev/null
tc qdisc add dev $lan_dev root cake bandwidth ${lan_rate} besteffort
iptables -t mangle -A POSTROUTING -o ${DEV} -p tcp --dport ${PORT:-443} -m comment --comment "$Uplink" -j DSCP --set-dscp-class CS1
tc qdisc add dev $DVE ingress
