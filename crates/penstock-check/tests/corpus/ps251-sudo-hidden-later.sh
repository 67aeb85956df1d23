#!/bin/sh
# expect: PS251 3
sudo tc qdisc add dev eth0 root netem \
    delay 20ms 2> /dev/null
