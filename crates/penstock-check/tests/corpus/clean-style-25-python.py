#!/usr/bin/env python3
"""A small wrapper around tc."""
import argparse
import shlex
import subprocess
import sys


class Tc:
    def __init__(self, dev, dry_run=False):
        self.dev = dev
        self.dry_run = dry_run

    def run(self, command, check=True):
        words = shlex.split(command)
        if self.dry_run:
            print("+", " ".join(words))
            return 0
        return subprocess.run(["tc"] + words, check=check).returncode

    def reset(self):
        self.run(f"qdisc del dev {self.dev} root", check=False)

    def htb(self, rate, classes):
        self.run(f"qdisc add dev {self.dev} root handle 1: htb default {classes[-1][0]}")
        self.run(f"class add dev {self.dev} parent 1: classid 1:1 htb rate {rate}mbit")
        for minor, share in classes:
            self.run(f"class add dev {self.dev} parent 1:1 classid 1:{minor} htb rate {rate * share // 100}mbit ceil {rate}mbit")
            self.run(f"qdisc add dev {self.dev} parent 1:{minor} fq_codel")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dev", default="eth0")
    parser.add_argument("--rate", type=int, default=100)
    args = parser.parse_args()
    tc = Tc(args.dev)
    tc.reset()
    tc.htb(args.rate, [(10, 30), (20, 50), (30, 20)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
