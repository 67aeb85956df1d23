#!/bin/bash
# no deletion
# expect: PS250 4
tc qdisc add dev eth0 root fq_codel
