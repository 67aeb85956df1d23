#!/bin/bash
# expect: PS252 4
tc -batch - <<EOF
qdisc del dev eth0 root
qdisc add dev eth0 root handle 1: htb default 20
class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
class add dev eth0 parent 1:1 classid 1:20 htb rate 100mbit
EOF
