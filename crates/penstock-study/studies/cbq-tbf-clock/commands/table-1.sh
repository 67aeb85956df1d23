# Table 1: the interferer of 12 Mbps is guaranteed 2 Mbps, as the study says, and borrows. What it may borrow up to, 7 Mbps, is fitted to the
# table: the study does not say it (README.md).
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 7Mbit allot 1514 cell 8 weight 700Kbit prio 8 maxburst 20 avpkt 1000 bounded
tc class add dev eth1 parent 1:1 classid 1:50 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5050 0xffff flowid 1:50
