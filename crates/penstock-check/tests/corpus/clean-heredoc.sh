#!/bin/bash
# a batch in a here-document
tc qdisc del dev eth0 root 2>/dev/null
tc -b - <<EOF
qdisc add dev eth0 root handle 1: htb default 20
class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
class add dev eth0 parent 1:1 classid 1:20 htb rate 10mbit
EOF
