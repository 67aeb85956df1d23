"""Mininet's links with every option of TCIntf.config, on nodes whose shell is the virtual machine's."""
import subprocess

from mininet.link import TCIntf


class Node:
    def __init__(self, name):
        self.name = name

    def cmd(self, *words):
        line = " ".join(str(w) for w in words)
        done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def addIntf(self, *_, **__):
        pass


OPTIONS = [
    dict(bw=10),
    dict(bw=10, delay="5ms", loss=2, max_queue_size=1000),
    dict(bw=10, delay="5ms", jitter="1ms", use_htb=True),
    dict(bw=1000, use_hfsc=True),
    dict(bw=0.5, use_hfsc=True, delay="20ms"),
    dict(bw=2, use_tbf=True),
    dict(bw=2, use_tbf=True, latency_ms=20, loss=10),
    dict(bw=100, enable_ecn=True),
    dict(bw=100, enable_red=True, delay="1ms"),
    dict(bw=100, enable_red=True, use_hfsc=True, max_queue_size=50),
    dict(delay="100us"),
    dict(loss=0.5),
    dict(max_queue_size=20),
    dict(bw=5, gro=True, txo=False, rxo=False),
]
node = Node("h1")
for options in OPTIONS:
    result = TCIntf("h1-eth0", node=node).config(**options)
    said = "".join(result["tcoutputs"])
    print("%s: parent%s%s" % (options, result["parent"].rstrip(), " SAID " + said if said else ""))
