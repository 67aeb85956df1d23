#!/bin/sh
# expect: PS230 8
# expect: PS232 7
WAN=eth0; IFB=ifb0; DOWN=80mbit
modprobe ifb numifbs=1
tc qdisc del dev $WAN ingress 2>/dev/null
tc qdisc add dev $WAN ingress
tc qdisc replace dev $IFB root cake bandwidth $DOWN besteffort
