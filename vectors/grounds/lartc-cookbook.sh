#!/bin/bash
# LARTC, split access: two uplinks, one table each.
IF1=eth0; IP1=10.0.0.1; P1=10.0.0.254; P1_NET=10.0.0.0/24
IF2=eth1; IP2=192.168.1.1; P2=192.168.1.254; P2_NET=192.168.1.0/24
T1=1 T2=2

ip route add $P1_NET dev $IF1 src $IP1 table $T1
ip route add default via $P1 table $T1
ip route add $P2_NET dev $IF2 src $IP2 table $T2
ip route add default via $P2 table $T2

ip route replace default via $P1

ip rule add from $IP1 table $T1
ip rule add from $IP2 table $T2

ip route flush cache
ip rule ls
for t in $T1 $T2; do
  echo "table $t"
  ip route show table $t
done
ip route get 198.51.100.7 from $IP2
