#!/bin/bash
# VLAN 4095 is nobody's
# expect: PS004 6
ip link add br0 type bridge vlan_filtering 1
ip link set eth1 master br0
bridge vlan add dev eth1 vid 4095 pvid untagged
