# Figures 17 to 19: the flows of 1.5 and 1 Mbps held to 1 and 0.5, 2 Mbps of small packets guaranteed, 5 Mbps held to 2.
# The study prints no command: this is what one typed with iproute2-2.2.4 (weight a tenth of the rate, maxburst 20, avpkt 1000).
tc qdisc add dev eth1 root handle 1: cbq bandwidth 100Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 8 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:10 cbq bandwidth 100Mbit rate 1000Kbit allot 1514 cell 8 weight 100Kbit prio 5 maxburst 20 avpkt 1000 bounded
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5001 0xffff flowid 1:10
tc class add dev eth1 parent 1:1 classid 1:20 cbq bandwidth 100Mbit rate 500Kbit allot 1514 cell 8 weight 50Kbit prio 5 maxburst 20 avpkt 1000 bounded
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5002 0xffff flowid 1:20
tc class add dev eth1 parent 1:1 classid 1:40 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5004 0xffff flowid 1:40
tc class add dev eth1 parent 1:1 classid 1:50 cbq bandwidth 100Mbit rate 2000Kbit allot 1514 cell 8 weight 200Kbit prio 5 maxburst 20 avpkt 1000 bounded
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip dport 5005 0xffff flowid 1:50
