# CBQ where it still was
# with: --kernel 2.6.35
tc qdisc add dev eth0 root handle 1: cbq bandwidth 10Mbit avpkt 1000
tc class add dev eth0 parent 1: classid 1:1 cbq bandwidth 10Mbit rate 2Mbit allot 1514 prio 5 avpkt 1000 bounded
