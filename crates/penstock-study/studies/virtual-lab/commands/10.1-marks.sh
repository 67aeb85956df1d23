# on U4, eth0 and eth1
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 15mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 6mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 4mbit ceil 8mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 1mbit prio 2
tc qdisc add dev eth0 parent 1:10 handle 10: sfq
tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10
tc qdisc add dev eth0 parent 1:30 handle 30: pfifo limit 20
tc filter add dev eth0 parent 1:0 prio 0 protocol ip handle 10 fw flowid 1:10
tc filter add dev eth0 parent 1:0 prio 0 protocol ip handle 20 fw flowid 1:20
tc filter add dev eth0 parent 1:0 prio 0 protocol ip handle 30 fw flowid 1:30
iptables -t mangle -N INSHAPER
iptables -t mangle -I PREROUTING -i eth1 -j INSHAPER
iptables -t mangle -A INSHAPER -p tcp --dport 5001 -j MARK --set-mark 10
iptables -t mangle -A INSHAPER -p tcp --dport 5002 -j MARK --set-mark 20
iptables -t mangle -A INSHAPER -m mark --mark 0 -j MARK --set-mark 30
