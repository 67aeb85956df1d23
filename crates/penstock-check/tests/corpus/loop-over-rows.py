# expect: PS170 19
# expect: PS103 18
import csv
import subprocess

def tc(*args):
    subprocess.run(["tc", *args], check=True)

def read(path):
    with open(path) as f:
        return [row for row in csv.DictReader(f)]

plans = read("plans.csv")
tc("qdisc", "replace", "dev", "eth1", "root", "handle", "1:", "htb", "default", "1")
tc("class", "replace", "dev", "eth1", "parent", "1:", "classid", "1:1", "htb", "rate", "1gbit")
tc("class", "replace", "dev", "eth1", "parent", "1:", "classid", "1:5", "htb", "rate", "1gbit")
for n, p in enumerate(plans, start=16):
    tc("class", "replace", "dev", "eth1", "parent", "1:5", "classid", "1:6", "htb", "rate", "5mbit", "ceil", "1mbit")
    tc("filter", "add", "dev", "eth1", "parent", "1:", "protocol", "ip", "prio", "5", "u32", "match", "ip", "dst", f"{p['ip']}/32", "flowid", "1:7")
