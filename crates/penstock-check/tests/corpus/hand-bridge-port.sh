#!/bin/bash
brctl addbr br0
brctl addif br0 eth0
brctl addif br0 eth1
tc qdisc del dev br0 root 2>/dev/null
tc qdisc add dev br0 root handle 1: htb default 10
tc class add dev br0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev br0 parent 1:1 classid 1:10 htb rate 10mbit
tc qdisc add dev br0 parent 1:10 fq_codel
