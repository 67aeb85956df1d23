#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:20 htb rate 900mbit burst 1600 cburst 1600 quantum 15140
tc qdisc add dev eth0 parent 1:20 fq_codel
