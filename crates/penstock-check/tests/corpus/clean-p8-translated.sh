#!/bin/bash
# the ports that are there behind DNAT, and one that the inside host has besides
iptables -t nat -A PREROUTING -i ppp0 -p tcp --dport 8080 -j DNAT --to-destination 192.168.1.10:80
iptables -t nat -A PREROUTING -i ppp0 -p tcp --dport 443 -j DNAT --to-destination 192.168.1.10
iptables -t nat -A PREROUTING -i ppp0 -p tcp --dport 80 -j DNAT --to-destination 192.168.1.10:8080
iptables -A FORWARD -i ppp0 -p tcp -d 192.168.1.10 --dport 80 -j ACCEPT
iptables -A FORWARD -i ppp0 -p tcp -d 192.168.1.10 --dport 443 -j ACCEPT
iptables -A FORWARD -i ppp0 -p tcp -d 192.168.1.10 --dport 8080 -j ACCEPT
