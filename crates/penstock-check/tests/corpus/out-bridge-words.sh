#!/bin/bash
# what bridge cannot read
# expect: PS004 7
# expect: PS004 8
# expect: PS004 9
ip link add br0 type bridge vlan_filtering 1
bridge vlan add dev eth0 vid 5000
bridge vlan add dev eth0 vid 20-10
bridge fdb add 00:11:22:33:44 dev eth0 master
