#!/bin/bash
# policer in bytes instead of bits
# expect: PS114 16
NDT_IPS="192.0.2.10 192.0.2.11"
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 5mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 95mbit ceil 100mbit
tc qdisc add dev eth0 handle ffff: ingress
for ip in $NDT_IPS; do
    tc filter add dev eth0 parent 1: protocol ip prio 1 \
        u32 match ip dst ${ip} flowid 1:10
    tc filter add dev eth0 parent ffff: protocol ip prio 1 \
        u32 match ip src ${ip} police rate 50kbps burst 10k drop flowid :1
done
