#!/bin/sh
# What iproute2 and ethtool have and the machine here has not, or what hangs on the machine: no mistake.
ip link set dev eth0 xdp off
ip link set dev eth0 altname wan
ip rule add tun_id 5 table 100
ip addr add 10.0.0.9/24 dev eth0 metric 50 proto kernel
bridge vlan add dev eth0 vid 10 pvid untagged
bridge fdb append 00:00:00:00:00:00 dev vx0 dst 10.0.0.2
bridge mdb show
ip link add mv1 link eth0 type macvlan mode source macaddr add 02:00:00:00:00:07
ip -6 tunnel add t6 mode ip6ip6 remote fd00::2 local fd00::1
ip netns monitor
ip route save table all
ethtool -G eth0 rx 1024 tx-push on
ethtool --set-ring eth0 rx 512 rx-buf-len 2048
ethtool --reset eth0 all
ethtool -I -a eth0
ethtool --json -k eth0
ethtool -Q eth0 queue_mask 0x1 --coalesce rx-usecs 5
ip -o -4 route get 8.8.8.8 from 10.0.0.1 iif eth0
