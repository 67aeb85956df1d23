#!/bin/sh
# expect: PS209 5
iptables -P FORWARD DROP
iptables -A FORWARD -i eth1 -j ACCEPT
iptables -A FORWARD -i eth1 -p tcp --dport 25 -j REJECT
