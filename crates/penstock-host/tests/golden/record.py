#!/usr/bin/env python3
"""Runs the scenes of a file against the real programs and writes what they gave.

    record.py iptables.txt > iptables-1.8.9.txt

Wants root on a machine that is thrown away afterwards. A scene is a run of command lines without an empty line; before
each the tables are emptied. Of every command is written: `$ ` and the line, `= ` and the exit status, `! ` and the
first line of standard error where there is any, and standard output, two blanks before each line.
"""

import subprocess
import sys

RESET = {
    "iptables": "for t in mangle filter; do iptables -t $t -F; iptables -t $t -X; iptables -t $t -Z; done;"
    "for c in INPUT FORWARD OUTPUT; do iptables -P $c ACCEPT; done",
}


def main():
    path = sys.argv[1]
    scene_reset = RESET[path.split("/")[-1].split(".")[0]]
    fresh = True
    print(f"# Recorded by record.py from {path.split('/')[-1]}; see there for the form.")
    for line in open(path).read().splitlines():
        if line.startswith("#"):
            continue
        if not line:
            fresh = True
            continue
        if fresh:
            subprocess.run(["sh", "-c", scene_reset], capture_output=True)
            print("\n", end="")
            fresh = False
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        print(f"$ {line}\n= {done.returncode}")
        if done.stderr:
            print("! " + done.stderr.splitlines()[0])
        for out in done.stdout.splitlines():
            print("  " + out)


main()
