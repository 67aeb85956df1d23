#!/usr/bin/env python3
# a wrapper that splits words
"""Shape one interface."""
import argparse, logging, shlex, subprocess, sys
LOG = logging.getLogger("shape")
def run(cmd, check=True):
    LOG.debug(cmd)
    return subprocess.run(shlex.split(cmd), check=check, capture_output=True, text=True)
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iface", default="eth0")
    p.add_argument("--rate", type=int, default=50)
    a = p.parse_args()
    run(f"tc qdisc del dev {a.iface} root", check=False)
    run(f"tc qdisc add dev {a.iface} root handle 1: htb default 10")
    run(f"tc class add dev {a.iface} parent 1: classid 1:1 htb rate {a.rate}mbit")
    run(f"tc class add dev {a.iface} parent 1:1 classid 1:10 htb rate {a.rate // 2}mbit ceil {a.rate}mbit")
    run(f"tc class add dev {a.iface} parent 1:1 classid 1:20 htb rate {a.rate // 2}mbit ceil {a.rate}mbit")
    run(f"tc filter add dev {a.iface} parent 1: protocol ip prio 1 u32 match ip dst 10.8.0.0/24 flowid 1:20")
if __name__ == "__main__":
    main()
