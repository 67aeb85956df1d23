# The labels of the UDP tests.
# ipchains -A output -d 192.129.N.0/24 -m LABEL, as iptables has it.
iptables -t mangle -A POSTROUTING -d 192.129.1.0/24 -j MARK --set-mark 2
iptables -t mangle -A POSTROUTING -d 192.129.2.0/24 -j MARK --set-mark 3
iptables -t mangle -A POSTROUTING -d 192.129.3.0/24 -j MARK --set-mark 4
iptables -t mangle -A POSTROUTING -d 192.129.4.0/24 -j MARK --set-mark 5
