# on U4, eth0, with Cisco routers
# the two filter lines are broken over two lines in print, rejoined here
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit burst 15k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 6mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 3mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 1mbit
tc qdisc add dev eth0 parent 1:10 handle 10: sfq
tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10
tc qdisc add dev eth0 parent 1:30 handle 30: pfifo limit 20
tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip dport 5001 0xffff flowid 1:10
tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip dport 5002 0xffff flowid 1:20
