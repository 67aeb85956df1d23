# prio where it counts for nothing
# expect: PS306 6
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit
tc class add dev eth0 parent 1:1 classid 1:2 htb rate 5mbit ceil 20mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:3 htb rate 15mbit ceil 20mbit prio 5
tc class add dev eth0 parent 1:2 classid 1:10 htb rate 5mbit ceil 20mbit
tc class add dev eth0 parent 1:3 classid 1:20 htb rate 15mbit ceil 20mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff match ip protocol 17 0xff flowid 1:10
