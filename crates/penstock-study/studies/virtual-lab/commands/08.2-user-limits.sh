# on U4, eth0, with Cisco routers
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 18mbit burst 15k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 5mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 3mbit ceil 3mbit
tc qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10
tc qdisc add dev eth0 parent 1:20 handle 20: sfq
tc qdisc add dev eth0 parent 1:30 handle 30: pfifo limit 20
tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip src 10.3.34.11 flowid 1:10
tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip src 10.3.34.33 flowid 1:20
