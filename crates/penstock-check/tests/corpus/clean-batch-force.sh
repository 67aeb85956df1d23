#!/bin/bash
cat > /run/shape.batch <<EOF
qdisc del dev eth0 root
qdisc add dev eth0 root handle 1: htb default 20
class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
class add dev eth0 parent 1:1 classid 1:20 htb rate 100mbit
EOF
tc -force -batch /run/shape.batch
tc -batch - <<EOF
qdisc del dev eth0 root
qdisc del dev eth1 root
EOF
tc qdisc del dev eth1 root && echo gone
tc qdisc del dev eth2 root && tc qdisc del dev eth2 ingress
tc qdisc del dev eth3 root && tc qdisc add dev eth3 root fq || tc qdisc replace dev eth3 root fq
