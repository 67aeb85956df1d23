#!/usr/bin/env python3
# expect: PS001 11
import subprocess

PROFILES = {
    "3g": dict(delay="150ms", jitter="40ms"),
    "sat": dict(delay="600ms", jitter=None),
}
for name in PROFILES:
    p = PROFILES[name]
    cmd = ["tc", "qdisc", "replace", "dev", "eth0", "root", "netem", "limit", "20000", "delay", p["delay"]]
    cmd += [p["jitter"]] if p["jitter"] else []
    cmd += ["distribution", "normal"]
    subprocess.check_call(cmd)
