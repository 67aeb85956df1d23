# a plug for ever
# expect: PS294 3
tc qdisc add dev eth0 root plug limit 1000000
