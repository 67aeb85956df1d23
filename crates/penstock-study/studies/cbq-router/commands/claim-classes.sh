# Two classes of 4 Mbit/s, 1:2 and 1:3, and one for the rest, to see where packets go.
tc qdisc add dev eth1 root handle 1: cbq bandwidth 10Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 10Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 8 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:2 cbq bandwidth 10Mbit rate 4Mbit allot 1514 cell 8 weight 400Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:3 cbq bandwidth 10Mbit rate 4Mbit allot 1514 cell 8 weight 400Kbit prio 5 maxburst 20 avpkt 1000
