#!/bin/bash
# expect: PS170 7
DEV=eth0
{
  echo "qdisc replace dev $DEV root handle 1: htb default 20"
  echo "class add dev $DEV parent 1: classid 1:20 htb rate 25mbit"
  echo "filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff match ip protocol 6 0xff flowid 1:10"
} | tc -b -
