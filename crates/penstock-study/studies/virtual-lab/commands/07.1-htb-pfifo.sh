# on U4, eth0, with Cisco routers
# start from an interface without a root qdisc
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 10mbit burst 15k
tc qdisc add dev eth0 parent 1:10 handle 20: pfifo limit 5
