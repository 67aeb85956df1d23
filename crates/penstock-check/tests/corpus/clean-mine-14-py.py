#!/usr/bin/env python3
"""Office shaper."""
import subprocess

DEV = "eth0"
CLASSES = [("10", "4mbit", "20mbit", 1), ("20", "10mbit", "20mbit", 2), ("30", "6mbit", "20mbit", 3)]


def tc(*words, check=True):
    subprocess.run(["tc", *words], check=check)


def main():
    tc("qdisc", "del", "dev", DEV, "root", check=False)
    tc("qdisc", "add", "dev", DEV, "root", "handle", "1:", "htb", "default", "30")
    tc("class", "add", "dev", DEV, "parent", "1:", "classid", "1:1", "htb", "rate", "20mbit")
    for cid, rate, ceil, prio in CLASSES:
        tc("class", "add", "dev", DEV, "parent", "1:1", "classid", f"1:{cid}", "htb", "rate", rate, "ceil", ceil, "prio", str(prio))
        tc("qdisc", "add", "dev", DEV, "parent", f"1:{cid}", "fq_codel")
    for port in (22, 3389):
        tc("filter", "add", "dev", DEV, "parent", "1:", "protocol", "ip", "prio", "1", "u32",
           "match", "ip", "protocol", "6", "0xff", "match", "ip", "sport", str(port), "0xffff", "flowid", "1:10")
    tc("filter", "add", "dev", DEV, "parent", "1:", "protocol", "ip", "prio", "2", "u32",
       "match", "ip", "protocol", "6", "0xff", "match", "ip", "sport", "443", "0xffff", "flowid", "1:20")


if __name__ == "__main__":
    main()
