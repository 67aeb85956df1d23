# What the administrator gives: the line, and a class for what reserves nothing.
tc qdisc add dev eth1 root handle 1: cbq bandwidth 4mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1: classid 1:1 cbq bandwidth 4mbit rate 4mbit allot 1514 weight 400kbit prio 8 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:9 cbq bandwidth 4mbit rate 500kbit allot 1514 weight 50kbit prio 7 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1: protocol ip prio 20 u32 match ip dst 10.0.2.2 flowid 1:9
# Messages of reservation pass before all, and each sender's are counted.
tc class add dev eth1 parent 1:1 classid 1:2 cbq bandwidth 4mbit rate 50kbit allot 1514 weight 5kbit prio 1 maxburst 20 avpkt 1000
iptables -A FORWARD -p udp --dport 1698 -s 10.0.1.2
iptables -A FORWARD -p udp --dport 1698 -s 10.0.1.3
tc filter add dev eth1 parent 1: protocol ip prio 5 u32 match ip dport 1698 0xffff flowid 1:2
