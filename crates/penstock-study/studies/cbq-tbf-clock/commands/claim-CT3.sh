# Classes for a claim: parent, rate, options, destination port.
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:10 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000 bounded
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5010 0xffff flowid 1:10
tc class add dev eth1 parent 1:0 classid 1:20 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000 borrow sharing bounded
tc class add dev eth1 parent 1:20 classid 1:21 cbq bandwidth 100Mbit rate 1000Kbit allot 1514 cell 8 weight 100Kbit prio 5 maxburst 20 avpkt 1000 isolated
tc class add dev eth1 parent 1:20 classid 1:22 cbq bandwidth 100Mbit rate 1000Kbit allot 1514 cell 8 weight 100Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5022 0xffff flowid 1:22
tc class add dev eth1 parent 1:0 classid 1:30 cbq bandwidth 100Mbit rate 4000Kbit allot 1514 cell 8 weight 400Kbit prio 5 maxburst 20 avpkt 1000 sharing bounded
tc class add dev eth1 parent 1:30 classid 1:31 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:30 classid 1:32 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5032 0xffff flowid 1:32
