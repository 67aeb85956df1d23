#!/bin/bash
tc qdisc replace dev eth0 root netem rate 100mbit delay 300ms
# expect: PS160 2
