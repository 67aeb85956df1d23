#!/bin/bash
# a chain that was never made
# expect: PS003 4
iptables -t mangle -A SHAPER -p tcp -j MARK --set-mark 1
