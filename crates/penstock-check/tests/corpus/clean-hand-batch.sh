#!/bin/bash
# everything in one go
IF=eth0
{
echo "qdisc replace dev $IF root handle 1: htb default 2"
echo "class add dev $IF parent 1: classid 1:1 htb rate 100mbit"
echo "class add dev $IF parent 1:1 classid 1:2 htb rate 10mbit ceil 100mbit"
echo "qdisc add dev $IF parent 1:2 fq_codel"
for i in $(seq 10 19); do
  echo "class add dev $IF parent 1:1 classid 1:$i htb rate 9mbit ceil 50mbit"
  echo "qdisc add dev $IF parent 1:$i fq_codel"
  echo "filter add dev $IF parent 1: protocol ip prio 1 u32 match ip dst 10.5.0.$i/32 flowid 1:$i"
done
} | tc -batch -
