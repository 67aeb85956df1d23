# an emulated path
tc qdisc add dev eth0 root netem delay 100ms 10ms loss 1%
