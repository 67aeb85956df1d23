#!/bin/bash
# expect: PS352 6
ip link add br0 type bridge
ip link set eth1 master br0
ip link set eth2 master br0
bridge vlan add dev eth1 vid 10 pvid untagged
bridge vlan add dev eth2 vid 10
ip link set br0 up
