#!/bin/bash
# expect: PS011 3
DEV= eth0
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq_codel
