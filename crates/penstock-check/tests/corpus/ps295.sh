# the MTU without the header
# expect: PS295 3
tc qdisc add dev eth0 root tbf rate 10mbit burst 20kb latency 50ms peakrate 12mbit mtu 1000
