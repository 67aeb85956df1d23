#!/usr/bin/python3
# Python: argument lists, a port without a protocol
# expect: PS190 18
import subprocess

DEV = "eth0"

def tc(*args):
    subprocess.run(["tc", *args], check=True)

def main():
    subprocess.run(["tc", "qdisc", "del", "dev", DEV, "root"], check=False)
    tc("qdisc", "add", "dev", DEV, "root", "handle", "1:", "htb", "default", "20")
    tc("class", "add", "dev", DEV, "parent", "1:", "classid", "1:1", "htb", "rate", "10mbit")
    tc("class", "add", "dev", DEV, "parent", "1:1", "classid", "1:10", "htb", "rate", "4mbit", "ceil", "10mbit")
    tc("class", "add", "dev", DEV, "parent", "1:1", "classid", "1:20", "htb", "rate", "6mbit", "ceil", "10mbit")
    tc("filter", "add", "dev", DEV, "parent", "1:", "protocol", "ip", "prio", "1", "u32",
       "match", "ip", "dport", "22", "0xffff", "flowid", "1:10")

if __name__ == "__main__":
    main()
