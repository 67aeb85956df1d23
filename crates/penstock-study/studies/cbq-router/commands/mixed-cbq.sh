# Table 4: three classes by destination address.
# The document prints the rates only; the rest is what one typed in 2000 with iproute2-2.2.4 (weight a tenth of the rate, maxburst 20).
tc qdisc add dev eth1 root handle 1: cbq bandwidth 10Mbit avpkt 1000 cell 8
tc class add dev eth1 parent 1:0 classid 1:1 cbq bandwidth 10Mbit rate 10Mbit allot 1514 cell 8 weight 1Mbit prio 8 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:2 cbq bandwidth 10Mbit rate 100Kbit allot 1514 cell 8 weight 10Kbit prio 1 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:3 cbq bandwidth 10Mbit rate 4Mbit allot 1514 cell 8 weight 400Kbit prio 2 maxburst 20 avpkt 1000
tc class add dev eth1 parent 1:1 classid 1:4 cbq bandwidth 10Mbit rate 5Mbit allot 1514 cell 8 weight 500Kbit prio 3 maxburst 20 avpkt 1000
tc filter add dev eth1 parent 1:0 protocol ip prio 100 handle 2 fw flowid 1:2
tc filter add dev eth1 parent 1:0 protocol ip prio 100 handle 3 fw flowid 1:3
tc filter add dev eth1 parent 1:0 protocol ip prio 100 handle 4 fw flowid 1:4
