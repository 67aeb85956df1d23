#!/bin/bash
# a port without a protocol
# expect: PS003 4
iptables -t mangle -A POSTROUTING --dport 22 -j MARK --set-mark 1
