#!/bin/sh
# download shaped on the inside device, upload on the outside one
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
tc qdisc replace dev eth0 root cake bandwidth 18mbit nat dual-srchost ack-filter
tc qdisc replace dev br-lan root cake bandwidth 90mbit dual-dsthost ingress
tc qdisc replace dev eth2 root cake
tc qdisc replace dev eth3 root cake bandwidth 1gbit datacentre besteffort
