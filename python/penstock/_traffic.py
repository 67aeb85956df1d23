"""Sets of packets and differences, from their words to columns."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Iterator

# Fields of sets of packets whose values are numbers.
_NUMBERS = (
    "sport|dport|dscp|tos|mark|connmark|priority|ttl|id|hop limit|total length|type|code|vlan|802\\.1ad|tag|pcp"
    "|protocol|fragment offset|ethertype"
)
_NUMBER = re.compile(rf"({_NUMBERS}) ((?:0x[0-9a-f]+|\d+)(?:-\d+)?(?:,\d+(?:-\d+)?)*)\Z")
_ADDRESS = re.compile(r"(src|dst) ([0-9a-f.:]+)/(\d+)\Z")
_LENGTH = re.compile(r"len (?:(\d+) or more|below (\d+))\Z")
_LONGEST = 0xFFFFFFFF
_PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58}
_ETHERTYPES = {"ip": 0x0800, "arp": 0x0806, "ipv6": 0x86DD}

# What a line of `diff` may begin with, before a colon, that is no device.
_OBJECTS = ("root", "ingress", "default", "command")
_ALONE = {"everything", "untagged", "forwarded", "df", *_PROTOCOLS, *_ETHERTYPES}

Range = tuple[Any, Any]


def _split(text: str, at: str) -> Iterator[str]:
    """Pieces between `at`; what stands in square brackets is one piece."""
    depth, begin = 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth == 0 and i >= begin and text.startswith(at, i):
            yield text[begin:i]
            begin = i + len(at)
    yield text[begin:]


def _ranges_of(piece: str) -> tuple[str, list[Range]] | None:
    """The field and the ranges of a piece of a condition; None where it is none."""
    if piece in _PROTOCOLS:
        return "protocol", [(_PROTOCOLS[piece], _PROTOCOLS[piece])]
    if piece in _ETHERTYPES:
        return "ethertype", [(_ETHERTYPES[piece], _ETHERTYPES[piece])]
    if found := _ADDRESS.match(piece):
        name, address, bits = found.groups()
        net = ipaddress.ip_network((address, int(bits)), strict=False)
        return name, [(str(net[0]), str(net[-1]))]
    if found := _LENGTH.match(piece):
        least, beyond = found.groups()
        return "len", [(int(least), _LONGEST) if least else (0, int(beyond) - 1)]
    if found := _NUMBER.match(piece):
        name, values = found.groups()
        ends = ([int(end, 0) for end in value.split("-")] for value in values.split(","))
        return name, [(each[0], each[-1]) for each in ends]
    return None


def ranges(condition: str) -> tuple[dict[str, list[Range]], list[str]]:
    """A condition as ranges of its fields, both ends included, and what is no range in its own words.

    >>> ranges("ip, dst 10.1.128.0/17, udp, dport 53,5000-5999, forwarded")
    ({'ethertype': [(2048, 2048)], 'dst': [('10.1.128.0', '10.1.255.255')], 'protocol': [(17, 17)], 'dport': [(53, 53), (5000, 5999)]}, ['forwarded'])
    >>> ranges("everything")
    ({}, [])
    """
    fields: dict[str, list[Range]] = {}
    other: list[str] = []
    within, *without = _split(condition, " without ")
    for piece in _split(within, ", "):
        either = [_ranges_of(each) for each in _split(piece, " or ")] if not piece.startswith("len ") else [_ranges_of(piece)]
        names = {each[0] for each in either if each}
        if None not in either and len(names) == 1 and not names & fields.keys():
            fields[names.pop()] = [r for each in either if each for r in each[1]]
        elif piece != "everything":
            other.append(piece)
    return fields, other + [f"without {piece}" for piece in without]


def difference(text: str, dev: str) -> dict[str, Any]:
    """A line of `diff` in columns."""
    said, _, behind = text.partition("   (")
    example = behind.removesuffix(")") or None
    row: dict[str, Any] = {
        "device": dev,
        "hook": "leaving",
        "object": None,
        "traffic": None,
        "ranges": None,
        "other": None,
        "before": None,
        "after": None,
        "example": None if example == "perhaps" else example,
        "exact": example != "perhaps" and "perhaps" not in said,
        "text": text,
    }
    begins, colon, rest = said.partition(": ")
    if colon and " " not in begins and "," not in begins and begins not in _ALONE and begins not in _OBJECTS:
        row["device"], said = begins, rest
        # Another device's lines begin with its name, its own settings with the name once more.
        said = said.removeprefix(f"{begins}: ")
        if "puts no qdisc on it" in said or re.match(r"(mtu|txqueuelen|kind|master) ", said):
            said = f"device: {said}"
    what, arrow, after = said.rpartition(" -> ")
    if arrow:
        what, colon, before = what.rpartition(": ")
        row["before"], row["after"] = before, after
    else:
        what, colon, after = said.rpartition(": ")
        what, row["after"] = (what, after) if colon else (said, None)
    if what.startswith("arriving, ") or re.match(r"(filter at )?ingress\b", what):
        row["hook"] = "arriving"
    what = what.removeprefix("arriving, ")
    if re.match(r"(class|root|ingress|default|device|queue of|filter at)\b", what):
        row["object"] = what
    elif what == "command":
        row["object"], row["hook"] = what, None
    elif not arrow:
        # There is more than is told.
        row["object"], row["exact"] = "more", False
    else:
        row["exact"] = row["exact"] and not what.startswith("within ")
        row["traffic"] = what.removeprefix("within ")
        row["ranges"], row["other"] = ranges(row["traffic"])
    return row
