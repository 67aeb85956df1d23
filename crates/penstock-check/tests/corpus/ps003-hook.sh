#!/bin/bash
# -o in PREROUTING
# expect: PS003 4
iptables -t mangle -A PREROUTING -o eth0 -j MARK --set-mark 1
