#!/bin/bash
# a queue of ten thousand
# expect: PS143 4
ip link set dev eth0 txqueuelen 10000
