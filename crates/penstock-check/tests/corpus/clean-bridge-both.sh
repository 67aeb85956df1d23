#!/bin/bash
# a transparent shaper
ip link add br0 type bridge
ip link set eth0 master br0
ip link set eth1 master br0
for d in eth0 eth1; do
  tc qdisc replace dev $d root tbf rate 10mbit burst 20k latency 50ms
done
