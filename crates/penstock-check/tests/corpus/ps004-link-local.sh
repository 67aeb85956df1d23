#!/bin/bash
# a gateway of the link without the link
# expect: PS004 5
ip -6 addr add 2001:db8:1::2/64 dev eth0
ip -6 route add default via fe80::1
tc qdisc replace dev eth0 root fq_codel
