#!/bin/sh
# a part of a larger program: who reads it in has set TC and IFACE
egress() {
    $TC qdisc del dev $IFACE root 2>/dev/null
    $TC qdisc add dev $IFACE root handle 1: htb default 12
    $TC class add dev $IFACE parent 1: classid 1:12 htb rat ${CEIL}kbit
}
# expect: PS001 6
