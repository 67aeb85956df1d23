#!/bin/bash
# sfq without perturb at the root
# expect: PS146 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root sfq
