#!/bin/bash
# What a command here fills in is somewhere else not empty.
GW=$(ip route show default | sed -n 's/.*via \([0-9.]*\).*/\1/p')
ip route replace 192.0.2.0/24 via $GW
ip link set dev eth0 mtu $(cat /etc/mtu 2>/dev/null)
