#!/bin/bash
# a queue of ten thousand packets for 10 Mbit/s
# with: --dev eth0 --rate 10mbit
# expect: PS143 5
ip link set dev eth0 txqueuelen 10000
