#!/bin/bash
# classes whose errors nobody sees
# expect: PS251 6
# expect: PS251 7
tc qdisc del dev eth0 root >/dev/null 2>&1
tc qdisc add dev eth0 root handle 1: htb default 1 >/dev/null 2>&1
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit >/dev/null 2>&1
