#!/usr/bin/env python3
import shlex
import subprocess

subprocess.run("tc qdisc replace dev eth0 root fq_codel", shell=True, check=True)
subprocess.run(shlex.split("tc qdisc replace dev eth1 root fq_codel"), check=True)
subprocess.run("sync", check=True)
