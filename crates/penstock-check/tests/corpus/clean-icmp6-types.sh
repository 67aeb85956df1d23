#!/bin/bash
tc qdisc replace dev eth0 clsact
tc filter add dev eth0 ingress prio 1 protocol ipv6 flower ip_proto icmpv6 type 135 action pass
tc filter add dev eth0 ingress prio 2 protocol ipv6 flower ip_proto icmpv6 type 136 action pass
tc filter add dev eth0 ingress prio 3 protocol ipv6 flower ip_proto icmpv6 action drop
tc qdisc replace dev eth1 clsact
tc filter add dev eth1 ingress prio 1 protocol ipv6 flower ip_proto icmpv6 type 128 action drop
tc qdisc replace dev eth2 clsact
tc filter add dev eth2 ingress prio 1 protocol ipv6 matchall action drop
