# on U4, eth0, with Cisco routers
# sudo in the third line is the document's
tc qdisc del dev eth0 root
tc qdisc add dev eth0 root handle 1: htb default 10
sudo tc class add dev eth0 parent 1:1 classid 1:10 htb rate 800kbit ceil 800kbit burst 15k
