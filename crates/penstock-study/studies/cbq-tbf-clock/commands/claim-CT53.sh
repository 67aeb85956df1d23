# Classes for a claim: parent, rate, options, destination port.
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 10000Kbit allot 1514 cell 8 weight 1000Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:10 cbq bandwidth 100Mbit rate 1000Kbit allot 1514 cell 8 weight 100Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5010 0xffff flowid 1:10
tc class add dev eth1 parent 1:1 classid 1:20 cbq bandwidth 100Mbit rate 1000Kbit allot 1514 cell 8 weight 100Kbit prio 5 maxburst 20 avpkt 1000 bounded
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5020 0xffff flowid 1:20
