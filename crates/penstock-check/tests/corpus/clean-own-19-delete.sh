#!/bin/sh
for d in eth0 eth1 ifb0; do tc qdisc del dev $d root 2>/dev/null; tc qdisc del dev $d ingress 2>/dev/null; done
exit 0
