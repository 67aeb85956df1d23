# on U4, eth0
# class 1:1 is named as parent but never created
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 10mbit burst 15k
