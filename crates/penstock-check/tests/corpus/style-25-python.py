#!/usr/bin/env python3
# expect: PS101 18
# expect: PS001 19
import subprocess


class Tc:
    def __init__(self, dev):
        self.dev = dev

    def run(self, *words):
        return subprocess.run(["tc", *words], check=False)

    def htb(self, rate):
        self.run("qdisc", "replace", "dev", self.dev, "root", "handle", "1:", "htb", "default", "20")
        self.run("class", "replace", "dev", self.dev, "parent", "1:", "classid", "1:1", "htb", "rate", f"{rate}mbit")
        self.run("class", "replace", "dev", self.dev, "parent", "1:1", "classid", "1:10", "htb", "rate", "60mbit")
        self.run("class", "replace", "dev", self.dev, "parent", "1:1", "classid", "1:20", "htb", "rate", "60mbit")
        self.run("qdisc", "replace", "dev", self.dev, "parent", "1:20", "fq_codel", "limt", "100")


Tc("eth0").htb(100)
