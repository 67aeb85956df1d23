#!/bin/sh
# expect: PS110 8
CG=/sys/fs/cgroup/net_cls
mkdir -p $CG/backup
echo 0x00010010 > $CG/backup/net_cls.classid
tc qdisc replace dev eth0 root handle 1: htb default 5
tc class replace dev eth0 parent 1: classid 1:1 htb rate 500mbit
tc class replace dev eth0 parent 1:1 classid 1:5 htb rate 400mbit ceil 500mbit
tc class replace dev eth0 parent 1:1 classid 1:10 htb rate 100mbit ceil 100mbit
tc filter replace dev eth0 parent 1: protocol ip prio 10 handle 1: cgroup
