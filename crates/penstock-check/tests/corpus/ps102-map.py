#!/usr/bin/env python3
# expect: PS102 13
import subprocess


def tc(*args):
    subprocess.run(["tc", *map(str, args)], check=True)


tc("qdisc", "replace", "dev", "eth1", "root", "handle", "1:", "htb", "default", 10)
tc("class", "add", "dev", "eth1", "parent", "1:", "classid", "1:1", "htb", "rate", "100mbit")
for n, ceil in enumerate((80, 300), 10):
    tc("class", "add", "dev", "eth1", "parent", "1:1", "classid", f"1:{n}", "htb", "rate", "50mbit", "ceil", f"{ceil}mbit")
