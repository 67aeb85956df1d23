# a delay in microseconds
# expect: PS162 3
tc qdisc add dev eth0 root netem delay 100
