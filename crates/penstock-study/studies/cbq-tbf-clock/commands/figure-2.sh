# Classes for a claim: parent, rate, options, destination port.
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 9000Kbit allot 1514 cell 8 weight 900Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:10 cbq bandwidth 100Mbit rate 4500Kbit allot 1514 cell 8 weight 450Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:10 classid 1:11 cbq bandwidth 100Mbit rate 2700Kbit allot 1514 cell 8 weight 270Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5011 0xffff flowid 1:11
tc class add dev eth1 parent 1:10 classid 1:12 cbq bandwidth 100Mbit rate 1800Kbit allot 1514 cell 8 weight 180Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5012 0xffff flowid 1:12
tc class add dev eth1 parent 1:1 classid 1:20 cbq bandwidth 100Mbit rate 2700Kbit allot 1514 cell 8 weight 270Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5020 0xffff flowid 1:20
tc class add dev eth1 parent 1:1 classid 1:30 cbq bandwidth 100Mbit rate 1800Kbit allot 1514 cell 8 weight 180Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5030 0xffff flowid 1:30
