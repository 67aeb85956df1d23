# a file for tc -batch
qdisc replace dev eth0 root handle 1: htb default 20
class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit
class add dev eth0 parent 1:1 classid 1:20 htb rate 6mbit ceil 10mbit
filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.1.0.0/16 flowid 1:10
