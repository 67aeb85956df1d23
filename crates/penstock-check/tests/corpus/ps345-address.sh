#!/bin/bash
# expect: PS345 5
iptables -P FORWARD DROP
iptables -t nat -A PREROUTING -d 203.0.113.5 -p tcp --dport 443 -j DNAT --to-destination 10.0.0.8
iptables -A FORWARD -d 203.0.113.5 -p tcp --dport 443 -j ACCEPT
