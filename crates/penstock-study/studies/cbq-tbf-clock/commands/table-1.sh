# Table 1: the interferer's class. Its rate is fitted to the table: the study says 2 Mbps, with which the order comes out and not the
# numbers (README.md has both).
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 8 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:50 cbq bandwidth 100Mbit rate 4350Kbit allot 1514 cell 8 weight 435Kbit prio 5 maxburst 20 avpkt 1000 bounded
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5050 0xffff flowid 1:50
