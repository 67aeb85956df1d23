#!/bin/bash
for path in /sys/class/net/e*; do
    dev=${path##*/}
    tc qdisc replace dev "$dev" root handle 1: mq
    tc qdisc replace dev "$dev" parent 1:1 fq
done
