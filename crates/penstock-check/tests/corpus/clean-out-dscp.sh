#!/bin/bash
# classes by DSCP for IPv4 and IPv6, flower
set -eu
D=eth0
tc qdisc replace dev $D root handle 1: htb default 30
tc class replace dev $D parent 1: classid 1:1 htb rate 100mbit
tc class replace dev $D parent 1:1 classid 1:10 htb rate 20mbit ceil 100mbit prio 0
tc class replace dev $D parent 1:1 classid 1:20 htb rate 50mbit ceil 100mbit prio 1
tc class replace dev $D parent 1:1 classid 1:30 htb rate 30mbit ceil 100mbit prio 2
for p in ip ipv6; do
  [ $p = ip ] && n=10 || n=20
  tc filter add dev $D parent 1: protocol $p prio $n flower ip_tos 0xb8/0xfc classid 1:10
  tc filter add dev $D parent 1: protocol $p prio $n flower ip_tos 0x48/0xfc classid 1:20
done
