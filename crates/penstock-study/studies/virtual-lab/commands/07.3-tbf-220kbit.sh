# on U5, eth0
tc qdisc add dev eth0 root tbf rate 220kbit latency 50ms burst 1540
