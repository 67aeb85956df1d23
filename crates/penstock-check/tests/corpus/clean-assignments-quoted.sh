#!/bin/bash
cat > /tmp/x.conf <<EOF
mtu= 1500
RATE= 20mbit
EOF
awk '{
 n= 5
 print n }' /etc/hosts
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq_codel
