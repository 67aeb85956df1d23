#!/bin/sh
opts="nat docsis ack-filter"
tc qdisc replace dev eth0 root cake bandwidth 20mbit $opts ingress
# expect: PS262 3
