#!/bin/bash
# right lines of bridge
ip link add br0 type bridge vlan_filtering 1
ip link set eth0 master br0
ip link set br0 up
bridge vlan del dev eth0 vid 1
bridge vlan add dev eth0 vid 10-20
bridge vlan add vid 30 dev eth0 pvid untagged master
bridge vlan add dev br0 vid 10 self
bridge -c vlan show
bridge vlan
bridge -j vlan show dev eth0
bridge fdb add 02:00:00:00:00:05 dev eth0 master static
bridge fdb replace 02:00:00:00:00:05 dev eth0 vlan 10 master static
bridge fdb show br br0
bridge fdb show dev eth0
bridge fdb del 02:00:00:00:00:05 dev eth0 master
bridge link set dev eth0 learning off
bridge link set dev eth0 cost 10
bridge link show
bridge -d link
