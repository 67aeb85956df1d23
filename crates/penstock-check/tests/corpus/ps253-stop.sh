#!/bin/bash
# the function that takes down is called at the end
# expect: PS253 6
start() { tc qdisc replace dev eth0 root fq_codel; }
# stop: down again
stop() { tc qdisc del dev eth0 root; }
start
stop
