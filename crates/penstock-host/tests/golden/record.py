#!/usr/bin/env python3
"""Runs the scenes of a file against the real programs and writes what they gave.

    record.py netfilter.txt > netfilter-1.8.9.txt

Wants root. A scene is a run of command lines without an empty line; each has a network namespace of its own, with eth0
and eth1. A line that begins with `< ` is standard input of the command before it. Of every command is written: `$ ` and
the line, its input, `= ` and the exit status, `! ` and the first line of standard error where there is any, and standard
output, two blanks before each line, without the comments that tell the time.
"""

import ctypes
import os
import subprocess
import sys
import tempfile

CLONE_NEWNET = 0x40000000
LEGACY = ["iptables", "ip6tables"]


def tools():
    """A folder where the plain names are the legacy programs."""
    folder = tempfile.mkdtemp()
    for name in LEGACY:
        for end in ["", "-save", "-restore"]:
            os.symlink(f"/usr/sbin/{name}-legacy{end}", f"{folder}/{name}{end}")
    return folder


def scenes(path):
    scene = []
    for line in open(path).read().splitlines() + [""]:
        if line.startswith("#"):
            continue
        if line.startswith("< "):
            scene[-1][1].append(line[2:])
        elif line:
            scene.append((line, []))
        elif scene:
            yield scene
            scene = []


def run(scene):
    ctypes.CDLL(None).unshare(CLONE_NEWNET)
    for line, given in scene:
        text = "".join(l + "\n" for l in given)
        done = subprocess.run(["sh", "-c", line], capture_output=True, input=text.encode())
        out = lambda b: b.decode("utf-8", "replace").splitlines()
        print(f"$ {line}")
        for l in given:
            print("< " + l)
        print(f"= {done.returncode}")
        if done.stderr:
            print("! " + out(done.stderr)[0])
        for l in out(done.stdout):
            if not l.startswith(("# Generated", "# Completed")):
                print("  " + l)


def main():
    path = sys.argv[1]
    os.environ["PATH"] = tools() + ":/usr/sbin:/usr/bin:/sbin:/bin"
    print(f"# Recorded by record.py from {path.split('/')[-1]}; see there for the form.")
    for scene in scenes(path):
        print(flush=True)
        child = os.fork()
        if child == 0:
            run(scene)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)


main()
