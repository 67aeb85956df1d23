#!/bin/sh
tc qdisc replace dev eth0 root cake bandwidth 50mbit besteffort diffserv4 dual-srchost nat
tc qdisc replace dev eth1 root cake bandwidth 50mbit flows triple-isolate
# expect: PS263 2
# expect: PS263 3
