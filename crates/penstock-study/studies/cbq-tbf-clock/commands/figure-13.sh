# Figure 13: a class of 950 Kbps for each interferer.
# The study prints no command: this is what one typed with iproute2-2.2.4 (weight a tenth of the rate, maxburst 20, avpkt 1000).
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 8 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:10 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5010 0xffff flowid 1:10
tc class add dev eth1 parent 1:1 classid 1:11 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5011 0xffff flowid 1:11
tc class add dev eth1 parent 1:1 classid 1:12 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5012 0xffff flowid 1:12
tc class add dev eth1 parent 1:1 classid 1:13 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5013 0xffff flowid 1:13
tc class add dev eth1 parent 1:1 classid 1:14 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5014 0xffff flowid 1:14
tc class add dev eth1 parent 1:1 classid 1:15 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5015 0xffff flowid 1:15
tc class add dev eth1 parent 1:1 classid 1:16 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5016 0xffff flowid 1:16
tc class add dev eth1 parent 1:1 classid 1:17 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5017 0xffff flowid 1:17
tc class add dev eth1 parent 1:1 classid 1:18 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5018 0xffff flowid 1:18
tc class add dev eth1 parent 1:1 classid 1:19 cbq bandwidth 100Mbit rate 950Kbit allot 1514 cell 8 weight 95Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5019 0xffff flowid 1:19
