# Figures 14 and 15: a class of CBQ for each flow, a TBF in it. The bucket is the least there may be, one packet.
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:10 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:10 handle 10: tbf rate 100Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5100 0xffff flowid 1:10
tc class add dev eth1 parent 1:0 classid 1:11 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:11 handle 11: tbf rate 200Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5101 0xffff flowid 1:11
tc class add dev eth1 parent 1:0 classid 1:12 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:12 handle 12: tbf rate 300Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5102 0xffff flowid 1:12
tc class add dev eth1 parent 1:0 classid 1:13 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:13 handle 13: tbf rate 400Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5103 0xffff flowid 1:13
tc class add dev eth1 parent 1:0 classid 1:14 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:14 handle 14: tbf rate 500Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5104 0xffff flowid 1:14
tc class add dev eth1 parent 1:0 classid 1:15 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:15 handle 15: tbf rate 600Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5105 0xffff flowid 1:15
tc class add dev eth1 parent 1:0 classid 1:16 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:16 handle 16: tbf rate 700Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5106 0xffff flowid 1:16
tc class add dev eth1 parent 1:0 classid 1:17 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:17 handle 17: tbf rate 800Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5107 0xffff flowid 1:17
tc class add dev eth1 parent 1:0 classid 1:18 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:18 handle 18: tbf rate 900Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5108 0xffff flowid 1:18
tc class add dev eth1 parent 1:0 classid 1:19 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:19 handle 19: tbf rate 1000Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5109 0xffff flowid 1:19
tc class add dev eth1 parent 1:0 classid 1:20 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:20 handle 20: tbf rate 1100Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5110 0xffff flowid 1:20
tc class add dev eth1 parent 1:0 classid 1:21 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:21 handle 21: tbf rate 1200Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5111 0xffff flowid 1:21
tc class add dev eth1 parent 1:0 classid 1:22 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 5 maxburst 20 avpkt 1000
tc qdisc add dev eth1 parent 1:22 handle 22: tbf rate 2000Kbit burst 1520 limit 30000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5112 0xffff flowid 1:22
