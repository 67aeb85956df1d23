# Classes for a claim: parent, rate, options, destination port.
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 10000Kbit allot 1514 cell 8 weight 1000Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:10 cbq bandwidth 100Mbit rate 5000Kbit allot 1514 cell 8 weight 500Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:10 classid 1:11 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:10 classid 1:12 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:20 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 1 u32 match ip protocol 17 0xff match ip tos 0x10 0xff flowid 1:20
tc filter add dev eth1 parent 1:0 protocol ip prio 2 u32 match ip src 10.1.0.2/32 flowid 1:10
tc filter add dev eth1 parent 1:10 protocol ip prio 1 u32 match ip dport 5011 0xffff flowid 1:11
tc filter add dev eth1 parent 1:10 protocol ip prio 1 u32 match ip dst 10.2.0.2/32 match ip dport 5012 0xffff flowid 1:12
