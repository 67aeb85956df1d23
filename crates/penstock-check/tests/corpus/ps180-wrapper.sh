#!/bin/bash
# Calls go through a function of the same name; the lines that are named are those of the calls.
# expect: PS180 11
tc() {
    echo "tc $*" >> /var/log/shaper.log
    command tc "$@"
}
tc qdisc replace dev eth0 root handle 1: prio

tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/16 flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.7.0/24 flowid 1:2
