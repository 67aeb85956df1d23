#!/usr/bin/env python3
# Python: sfq without perturb in a class
# expect: PS146 18
import shlex, subprocess

class Shaper:
    def __init__(self, dev, rate):
        self.dev = dev
        self.rate = rate

    def run(self, line):
        subprocess.check_call(shlex.split(line))

    def start(self):
        subprocess.call("tc qdisc del dev %s root 2>/dev/null" % self.dev, shell=True)
        self.run("tc qdisc add dev %s root handle 1: htb default 10" % self.dev)
        self.run("tc class add dev %s parent 1: classid 1:10 htb rate %dkbit" % (self.dev, self.rate))
        self.run("tc qdisc add dev %s parent 1:10 handle 10: sfq" % self.dev)

if __name__ == '__main__':
    Shaper("eth0", 5000).start()
