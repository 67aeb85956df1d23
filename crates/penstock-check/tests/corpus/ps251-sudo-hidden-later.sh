#!/bin/sh
sudo tc qdisc add dev eth0 root netem \
    delay 20ms 2> /dev/null
# expect: PS250 2
# expect: PS251 2
