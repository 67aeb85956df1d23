#!/usr/bin/env python3
# expect: PS012 5
import subprocess

subprocess.run("tc qdisc replace dev eth0 root fq_codel", check=True)
