#!/bin/bash
# run from /etc/network/if-up.d
TC=$(which tc)
DEV=eth0
$TC qdisc add dev $DEV root handle 1: htb default 10
$TC class add dev $DEV parent 1: classid 1:10 htb rate 10mbit
$TC qdisc add dev $DEV parent 1:10 fq_codel
# expect: PS250 5
