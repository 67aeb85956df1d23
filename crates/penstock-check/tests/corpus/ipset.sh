#!/bin/sh
# What ipset refuses, and sets that are not there.
# penstock-check: PS003
ipset create banned hash:ip
# expect: PS003 6
ipset add banned 10.0.0.300
ipset add banned 10.0.0.1
# expect: PS003 9
ipset add bannd 10.0.0.2
# expect: PS003 11
ipset create other hash:ipp
# expect: PS003 13
iptables -A INPUT -m set --match-set others src -j DROP
iptables -A INPUT -m set --match-set banned src -j DROP
# expect: PS003 16
ipset destroy banned
# expect: PS003 18
ipset add banned 10.0.0.1
# expect: PS003 20
iptables -A INPUT -j SET --add-set nowhere src
# expect: PS003 22
ipset create banned hash:ip
# expect: PS003 24
ipset create ports bitmap:port
ipset create ports bitmap:port range 1-1024
# expect: PS003 27
ipset add ports 2000
