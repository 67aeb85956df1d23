#!/bin/bash
# expect: PS345 7
iptables -P FORWARD DROP
iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
iptables -t nat -A PREROUTING -i ppp0 -p tcp --dport 8080 -j DNAT --to-destination 192.168.1.10:80
# the port is 80 by then
iptables -A FORWARD -i ppp0 -o eth1 -p tcp -d 192.168.1.10 --dport 8080 -j ACCEPT
