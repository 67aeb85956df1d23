#!/bin/bash
# mq with fq below, as distributions do
tc qdisc replace dev eth0 root handle 1: mq
sysctl -w net.core.default_qdisc=fq
