# A home router: everybody leaves with its public address, one port leads to the server.
sysctl -w net.ipv4.ip_forward=1

iptables -t nat -A POSTROUTING -o wan -j MASQUERADE
iptables -t nat -A PREROUTING -d 192.0.2.2 -p tcp --dport 8080 -j DNAT --to-destination 10.0.1.12:5001

# From outside comes what was asked for, and what is forwarded.
iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
iptables -A FORWARD -i wan -m conntrack --ctstate DNAT -j ACCEPT
iptables -A FORWARD -i wan -j DROP
