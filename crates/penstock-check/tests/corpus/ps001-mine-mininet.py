from mininet.net import Mininet

net = Mininet()
h1 = net.addHost("h1")
h1.cmd("tc qdisc add dev h1-eth0 root handle 1: tbf rate 10mbit burst 20kb latency 30ms")
h1.cmd("tc qdisc add dev h1-eth0 parent 1: netem dealy 20ms")
# expect: PS001 6
# expect: PS250 5
