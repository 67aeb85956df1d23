#!/bin/sh
# A bucket for the rate and one for the ceiling, both less than a frame.
# expect: PS121 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit burst 900 cburst 900
