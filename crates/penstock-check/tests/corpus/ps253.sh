#!/bin/bash
# deleted at the end
# expect: PS253 6
tc qdisc add dev eth0 root fq_codel
tc qdisc show dev eth0
tc qdisc del dev eth0 root
