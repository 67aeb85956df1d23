#!/bin/bash
# burst 1b in an inner class
# expect: PS121 7
echo "Creating HTB"
tc qdisc del dev eth2 root 2>/dev/null
tc qdisc add dev eth2 root handle 1: htb default 21
tc class add dev eth2 parent 1: classid 1:1 htb rate 150mbit burst 1b
tc class add dev eth2 parent 1:1 classid 1:20 htb rate 30mbit ceil 150mbit quantum 1600
tc class add dev eth2 parent 1:1 classid 1:21 htb rate 10mbit ceil 150mbit quantum 1600
tc filter add dev eth2 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/24 flowid 1:20
