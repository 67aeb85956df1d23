#!/bin/bash
# mqprio below a class
# expect: PS002 6
tc qdisc replace dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 900mbit quantum 1514
tc qdisc add dev eth0 parent 1:10 handle 10: mqprio num_tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 hw 0
