# etf without delta
# expect: PS299 3
tc qdisc add dev eth0 root etf clockid CLOCK_TAI
