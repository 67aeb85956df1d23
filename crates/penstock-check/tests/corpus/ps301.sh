# conform first
# expect: PS301 4
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 action police rate 10mbit burst 200k conform-exceed pass/drop
