# jitter above the delay
# expect: PS280 3
tc qdisc add dev eth0 root netem delay 10ms 15ms
