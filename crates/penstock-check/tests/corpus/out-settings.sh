#!/bin/sh
# What sysctl and ethtool do not take, and what they take.
# expect: PS014 8
# expect: PS014 9
# expect: PS014 10
# expect: PS014 15
# expect: PS014 18
sysctl -w net.ipv4.ip_foward=1
echo 1 > /proc/sys/net/ipv4/ip_foward
sysctl -w net.ipv4.tcp_tw_recycle=1
sysctl -w net.ipv4.ip_forward=1
sysctl -w vm.swappiness=10
sysctl -w net.core.xfrm_acq_expires=10
sysctl -w net.ipv4.neigh.default.gc_thresh3=4096
ethtool -K eth0 tso of gso off
ethtool -K eth0 tso off gso off hw-tc-offload on
ethtool -G eth0 rx 4096 tx 4096
ethtool -G eth0 rx-max 4096
