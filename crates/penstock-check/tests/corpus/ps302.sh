# a mark behind the redirect
# expect: PS302 8
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:10 htb rate 10mbit
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0 action skbedit priority 6
