#!/bin/sh -x
# the HOWTO's policer against SYN floods
TC=/sbin/tc
IPTABLES=/sbin/iptables
INDEV=eth2
$IPTABLES -A PREROUTING -i $INDEV -t mangle -p tcp --syn -j MARK --set-mark 1
$TC qdisc del dev $INDEV ingress 2>/dev/null
$TC qdisc add dev $INDEV handle ffff: ingress
$TC filter add dev $INDEV parent ffff: protocol ip prio 50 u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u8 0x02 0x12 at 33 police rate 160kbit burst 4k drop flowid :1
