#!/bin/sh
# expect: PS130 7
# expect: PS131 10
# expect: PS001 11
DEV=ppp0
tc qdisc del dev $DEV root 2> /dev/null
tc qdisc add dev $DEV root handle 1: hfsc
tc class add dev $DEV parent 1: classid 1:1 hfsc ls m2 900kbit ul m2 900kbit
tc class add dev $DEV parent 1:1 classid 1:10 hfsc rt m2 700kbit ls m2 100kbit
tc class add dev $DEV parent 1:1 classid 1:20 hfsc rt m2 500kbit ls m2 400kbit
tc class add dev $DEV parent 1:1 classid 1:30 hfsc ls rate2 300kbit
