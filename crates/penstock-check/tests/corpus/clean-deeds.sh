# actions in their order
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:10 htb rate 10mbit
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action skbedit priority 6 action mirred egress redirect dev ifb0
tc qdisc add dev eth1 handle ffff: ingress
tc filter add dev eth1 parent ffff: protocol ip prio 1 u32 match u32 0 0 action police rate 10mbit burst 200k conform-exceed drop/pass
tc qdisc add dev eth2 root stab overhead 40 linklayer ethernet cake bandwidth 20mbit raw
tc qdisc add dev eth3 root handle 1: htb default 20
tc class add dev eth3 parent 1: classid 1:1 htb rate 20mbit
tc class add dev eth3 parent 1:1 classid 1:2 htb rate 5mbit ceil 20mbit
tc class add dev eth3 parent 1:1 classid 1:3 htb rate 15mbit ceil 20mbit
tc class add dev eth3 parent 1:2 classid 1:10 htb rate 5mbit ceil 20mbit prio 1
tc class add dev eth3 parent 1:3 classid 1:20 htb rate 15mbit ceil 20mbit prio 2
tc filter add dev eth3 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff match ip protocol 17 0xff flowid 1:10
