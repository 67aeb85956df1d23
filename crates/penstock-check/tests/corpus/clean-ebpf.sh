#!/bin/bash
# Compiled programs are files of the machine that the script is for.
tc qdisc replace dev eth0 clsact
tc filter replace dev eth0 egress bpf direct-action obj edt.o sec classifier
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class replace dev eth0 parent 1: classid 1:10 htb rate 5mbit
tc class replace dev eth0 parent 1: classid 1:20 htb rate 5mbit
tc filter replace dev eth0 parent 1: protocol all prio 1 bpf obj classify.o sec cls flowid 1:10
