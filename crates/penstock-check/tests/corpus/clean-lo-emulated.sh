#!/bin/sh
# Two programs of one machine talk over a link that is made slow.
tc qdisc del dev lo root 2>/dev/null
tc qdisc add dev lo root handle 1: htb default 10
tc class add dev lo parent 1: classid 1:10 htb rate 100mbit
tc qdisc add dev lo parent 1:10 handle 10: netem delay 20ms
