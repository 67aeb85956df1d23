#!/bin/bash
# expect: PS209 6
iptables -F FORWARD
iptables -A FORWARD -i lan0 -o wan0 -j ACCEPT
iptables -A FORWARD -j DROP
iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
