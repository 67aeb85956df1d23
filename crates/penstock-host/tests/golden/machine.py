#!/usr/bin/env python3
"""Runs the scenes of a file against the real programs and writes what they gave.

    machine.py ip.txt > ip-6.1.0.txt

Wants root and a kernel that may be thrown away. A scene is a run of command lines without an empty line; each has a
network namespace of its own, in which IPv6 is off, and no namespaces with names. Of every
command is written: `$ ` and the line, `= ` and the exit status, `! ` and the first line of standard error where there
is any, and standard output, two blanks before each line.
"""

import ctypes
import os
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
PREPARE = (
    "mount --make-rprivate /; mkdir -p /run/netns; mount -t tmpfs none /run/netns; mount -t sysfs none /sys;"
    "echo 1 > /proc/sys/net/ipv6/conf/default/addr_gen_mode; echo 1 > /proc/sys/net/ipv6/conf/all/addr_gen_mode;"
    "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"
)
# A namespace made by a scene has no IPv6 either.
QUIET = (
    "for n in $(ip netns | cut -d' ' -f1); do for c in all default lo; do"
    " ip netns exec $n sysctl -qw net.ipv6.conf.$c.disable_ipv6=1; done; done"
)


def scene(lines):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["sh", "-c", PREPARE], capture_output=True)
    print("\n", end="")
    for line in lines:
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        if line.startswith("ip netns add"):
            subprocess.run(["sh", "-c", QUIET], capture_output=True)
        print(f"$ {line}\n= {done.returncode}")
        if done.stderr:
            print("! " + done.stderr.splitlines()[0])
        for out in done.stdout.splitlines():
            print("  " + out)
    sys.stdout.flush()
    os._exit(0)


def main():
    path = sys.argv[1]
    open("/proc/sys/net/core/default_qdisc", "w").write("pfifo_fast")
    print(f"# Recorded by machine.py from {path.split('/')[-1]}; see there for the form.", flush=True)
    lines = []
    for line in open(path).read().splitlines() + [""]:
        if line.startswith("#"):
            continue
        if line:
            lines.append(line)
        elif lines:
            scene(lines)
            lines = []


main()
