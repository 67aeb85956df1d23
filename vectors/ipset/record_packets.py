"""Packets of the recorders, as frames, and commands."""
import socket
import struct
import subprocess

OURS = "02:00:00:00:00:02"


def checksum(b):
    b += b"\0" * (len(b) % 2)
    s = sum(struct.unpack(f"!{len(b) // 2}H", b))
    s = (s >> 16) + (s & 0xFFFF)
    return ~(s + (s >> 16)) & 0xFFFF


def frame(p):
    data = b"x" * p["len"]
    if p["proto"] == 6:
        l4 = struct.pack("!HHIIBBHHH", p["sport"], p["dport"], 1, 0, 5 << 4, 2, 1000, 0, 0) + data
    elif p["proto"] == 17:
        l4 = struct.pack("!HHHH", p["sport"], p["dport"], 8 + len(data), 0) + data
    elif p["proto"] == 1:
        l4 = struct.pack("!BBHHH", *p["icmp"], 0, 1, 1) + data
        l4 = l4[:2] + struct.pack("!H", checksum(l4)) + l4[4:]
    else:
        l4 = struct.pack("!HH", 0, 0x0800) + data
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(l4), 1, 0, 64, p["proto"], 0, socket.inet_aton(p["src"]), socket.inet_aton(p["dst"]))
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    macs = bytes.fromhex(p.get("dmac", OURS).replace(":", "")) + bytes.fromhex(p["smac"].replace(":", ""))
    return macs + b"\x08\x00" + ip + l4


def sh(line):
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True)
