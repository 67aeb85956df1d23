#!/bin/bash
# add, or change where it is there
tc qdisc add dev eth0 root handle 1: fq_codel 2>/dev/null || tc qdisc change dev eth0 root fq_codel
