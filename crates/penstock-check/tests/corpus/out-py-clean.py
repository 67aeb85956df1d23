#!/usr/bin/env python3
# Python: a clean shaper
"""Limits some hosts behind eth1."""
import argparse
import subprocess

HOSTS = [("192.168.1.10", 2), ("192.168.1.11", 4)]

def run(cmd, check=True):
    subprocess.run(cmd, shell=True, check=check)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dev", default="eth1")
    parser.add_argument("--total", type=int, default=50)
    args = parser.parse_args()
    dev = args.dev
    run(f"tc qdisc del dev {dev} root 2>/dev/null", check=False)
    run(f"tc qdisc add dev {dev} root handle 1: htb default ff")
    run(f"tc class add dev {dev} parent 1: classid 1:1 htb rate {args.total}mbit")
    run(f"tc class add dev {dev} parent 1:1 classid 1:ff htb rate 10mbit ceil {args.total}mbit")
    run(f"tc qdisc add dev {dev} parent 1:ff fq_codel")
    for i, (host, rate) in enumerate(HOSTS):
        minor = format(0x10 + i, "x")
        run(f"tc class add dev {dev} parent 1:1 classid 1:{minor} htb rate {rate}mbit ceil {rate}mbit")
        run(f"tc qdisc add dev {dev} parent 1:{minor} fq_codel")
        run(f"tc filter add dev {dev} parent 1: protocol ip prio 1 u32 match ip dst {host}/32 flowid 1:{minor}")

if __name__ == "__main__":
    main()
