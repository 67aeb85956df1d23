#!/usr/bin/env python3
# Python: str.format, the default does not exist
# expect: PS107 15
import subprocess
import sys

NIC = "eth0"
bandwidth = "1Gbit"

def sh(cmd):
    print(cmd)
    return subprocess.call(cmd, shell=True)

sh("tc qdisc del dev {} root".format(NIC))
sh("tc qdisc add dev {} root handle 1: htb default 30".format(NIC))
sh("tc class add dev {} parent 1: classid 1:11 htb rate {} ceil {}".format(NIC, bandwidth, bandwidth))
