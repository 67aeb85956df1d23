#!/bin/sh
# expect: PS002 8
egress() {
    tc qdisc del dev eth0 root 2>/dev/null
    tc qdisc add dev eth0 root handle 1: htb default 12
    tc class add dev eth0 parent 1: classid 1:1 htb rate 1000kbit
    tc class add dev eth0 parent 1:1 classid 1:12 htb rate 1000kbit
    tc class add dev eth0 parent 1:1 classid 2:13 htb rate 1000kbit
}
