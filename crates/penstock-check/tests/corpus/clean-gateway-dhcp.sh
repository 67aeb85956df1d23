#!/bin/bash
# the machine's own addresses are not the script's
ip route add 192.168.50.0/24 via 192.168.1.254 dev eth0
ip route replace default via 192.168.1.1
tc qdisc replace dev eth0 root fq_codel
