# a limit too small for the link
# with: --rate 100mbit
# with: --dev eth0
# expect: PS160 5
tc qdisc add dev eth0 root netem delay 100ms limit 100
