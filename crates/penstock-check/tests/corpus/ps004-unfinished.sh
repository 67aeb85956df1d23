#!/bin/bash
# Commands of ip that end before they are complete.
# expect: PS004 6
# expect: PS004 7
# expect: PS004 8
ip route add default via
ip tcp_metrics delete
ip link set dev eth0 mtu
