#!/usr/bin/env python3
import subprocess

DEV = "eth0"

def tc(*words):
    subprocess.check_call(["tc", *words])

tc("qdisc", "replace", "dev", DEV, "root", "handle", "1:", "htb", "default", "20")
tc("class", "add", "dev", DEV, "parent", "1:", "classid", "1:1", "htb", "rate", "10mbit")
tc("class", "add", "dev", DEV, "parent", "1:1", "classid", "1:20", "htb", "rate", "2mbit", "ceil", "10mbit")
subprocess.run(f"tc class change dev {DEV} parent 1:1 classid 1:20 htb rate 4mbit", shell=True)
# expect: PS117 12
