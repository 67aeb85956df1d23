#!/bin/bash
# expect: PS114 8
# penstock-check: PS114
SUDO=${SUDO:-sudo}
TC="sudo -n tc"
$SUDO tc qdisc del dev eth0 root 2>/dev/null
$TC qdisc add dev eth0 root handle 1: htb default 10
$TC class add dev eth0 parent 1: classid 1:10 htb rate 10mbps
$SUDO tc qdisc add dev eth0 parent 1:10 fq_codel
