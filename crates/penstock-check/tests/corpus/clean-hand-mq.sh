#!/bin/bash
for d in eth0 eth1; do
  ethtool -K $d tso off gso off gro off 2>/dev/null
  tc qdisc replace dev $d root handle 1: fq
done
sysctl -w net.core.default_qdisc=fq
sysctl -w net.ipv4.tcp_congestion_control=bbr
