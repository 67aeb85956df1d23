# a limit of a thousand for sixteen thousand packets
# expect: PS160 3
tc qdisc add dev eth0 root netem delay 200ms rate 1gbit
