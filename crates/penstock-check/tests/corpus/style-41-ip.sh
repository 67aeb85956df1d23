#!/bin/sh
# expect: PS004 9
# expect: PS004 13
# expect: PS004 16
# expect: PS004 17
# expect: PS004 18
DEV=eth0
# A trunk's VLAN: nothing else is said of the device that is not there.
ip link add link $DEV name $DEV.10 type vlan idd 10
ip link set $DEV.10 up
tc qdisc replace dev $DEV.10 root fq_codel
# The ifb that downloads are to pass.
ip link add ifb7 type ibf
ip link set ifb7 up
tc qdisc replace dev ifb7 root cake bandwidth 50mbit
ip tunnel add gre1 mode gre lcoal 192.0.2.1 remote 198.51.100.7
ip adr add 10.0.0.1/24 dev $DEV
ip link add link $DEV nmae $DEV.11 type vlan id 11
