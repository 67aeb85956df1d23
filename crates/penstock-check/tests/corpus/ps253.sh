#!/bin/bash
# deleted at the end
# expect: PS253 5
tc qdisc add dev eth0 root fq_codel
tc qdisc del dev eth0 root
