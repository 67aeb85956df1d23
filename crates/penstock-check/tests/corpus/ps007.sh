#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb \ 
   rate 10mbit
# expect: PS007 3
# expect: PS250 2
