#!/usr/bin/env python3
"""Records what real `iptables`, `ip6tables` (both legacy, 1.8.9) and `nft` (1.0.6) say of random rules, and what they list then.

    rules.py FIRST COUNT OUT.jsonl

Seeds: 1 to 99 iptables, 101 to 199 ip6tables, 201 to 299 nft. Devices: eth0 and eth1 (dummy). Each case in a namespace of its own; the kernel
needs the modules of every match and target below.
"""
import json
import random
import shlex
import subprocess
import sys

# `{a|b}`: one of them; `[a]`: sometimes. Within a part `~` stands for a blank.
MARK = "{1|0x10|0x10/0xff|255|0xffffffff|0x1/0x0|10/0xf|-1|x|0x100000000}"
PORT = "{80|443|http|1024:65535|:1023|5000:|22:22|0|65536|65616|ssh|domain|6000:5000}"
MATCHES = [
    "-m mark [!] --mark " + MARK,
    "-m connmark [!] --mark " + MARK,
    "-m conntrack [!] --ctstate {NEW|ESTABLISHED,RELATED|INVALID|NEW,SNAT|DNAT|FOO|UNTRACKED}",
    "-m state --state {NEW|ESTABLISHED|RELATED,ESTABLISHED|new|BAD}",
    "-m limit --limit {5/s|10/minute|1/hour|100/day|20|0/s|5/fortnight|10000/s|3/sec} [--limit-burst~{1|10|5|0|10000}]",
    "-m length --length {100|64:128|:100|1000:|!|70000}",
    "-m dscp [!] {--dscp~0x2e|--dscp-class~EF|--dscp-class~cs1|--dscp~64|--dscp-class~AF41|--dscp-class~ZZ}",
    "-m tos --tos {0x10|Minimize-Delay|0x10/0x3f|16|foo|Maximize-Throughput}",
    "-m multiport {--dports~80,443|--sports~22|--ports~1:10,20|--dports~http,https|!~--dports~80}",
    "-m comment --comment {'hello~world'|x|''}",
    "-m mac --mac-source {00:11:22:33:44:55|aa:bb:cc:dd:ee:FF|1:2:3:4:5:6|zz}",
    "-m pkttype [!] --pkt-type {unicast|broadcast|multicast|foo}",
    "-m statistic --mode {random~--probability~0.5|nth~--every~3~--packet~0|random~--probability~1.5|nth~--every~2|foo|nth~--every~3~--packet~3}",
    "-m connbytes [!] --connbytes {1000:|0:500|5|1000:10} --connbytes-dir {both|original|reply|x} --connbytes-mode {bytes|packets|avgpkt|y}",
    "-m connlimit {--connlimit-above~10|--connlimit-upto~5|--connlimit-above~10~--connlimit-mask~24|--connlimit-above~10~--connlimit-daddr}",
    "-m hashlimit --hashlimit-name {h1|h2} {--hashlimit-above~10/s|--hashlimit-upto~5/min|--hashlimit~1mb/s|--hashlimit-above~512kb/s} "
    "[--hashlimit-mode~{srcip|dstip,dstport|srcip,srcport|foo}] [--hashlimit-burst~{5|10|1mb}]",
    "-m recent --name {r1|r2} {--set|--update~--seconds~60|--rcheck~--hitcount~4|--remove|--update~--seconds~60~--hitcount~3~--rttl} [--rdest]",
    "-m time {--timestart~08:00~--timestop~17:00|--weekdays~Mon,Tue|--datestart~2024-01-01|--monthdays~1,15|--timestart~25:00}",
    "-m addrtype [!] {--dst-type~LOCAL|--src-type~UNICAST,BROADCAST|--dst-type~foo|--limit-iface-in~--dst-type~LOCAL}",
    "-m owner {--uid-owner~0|--uid-owner~1000-2000|--gid-owner~0|!~--uid-owner~0|--socket-exists|--uid-owner~nosuch}",
    "-m quota --quota {1000|0|18446744073709551616|5k}",
    "-m u32 --u32 {'6&0xFF=1'|'0>>22&0x3C@4=0x1:0x5'|'4&0x1FFF=0'|bad|'0&0xFF=1&&4=2'}",
]
TARGETS = [
    "-j {ACCEPT|DROP|RETURN}", "-j {ACCEPT|DROP|RETURN}", "-j ACCEPT", "", "-j {mych|nosuch|other} [--x]", "-g {mych|nosuch}",
    "-j {accept|MARK|Drop}",
    "-j MARK {--set-mark~" + MARK + "|--set-xmark~" + MARK + "|--or-mark~0x1|--and-mark~0xff|--xor-mark~3|--set-mark~1~--or-mark~2}",
    "-j CONNMARK {--save-mark|--restore-mark|--set-mark~" + MARK + "|--save-mark~--mask~0xff|--restore-mark~--nfmask~0xff~--ctmask~0xf0}",
    "-j CLASSIFY --set-class {1:10|0:0|1:|ffff:ffff|10|1:10000}",
    "-j DSCP {--set-dscp~46|--set-dscp-class~EF|--set-dscp-class~AF11|--set-dscp~64|--set-dscp~0x2e|--set-dscp-class~ZZ}",
    "-j TOS {--set-tos~0x10|--set-tos~0x10/0x3f|--set-tos~Minimize-Delay|--and-tos~0xf0|--or-tos~8|--xor-tos~3}",
    "-j TCPMSS {--clamp-mss-to-pmtu|--set-mss~1400|--set-mss~70000}",
    "-j LOG [{--log-prefix~'x:'|--log-level~debug|--log-level~4~--log-ip-options|--log-level~foo|--log-tcp-sequence~--log-uid}]",
    "-j REJECT [--reject-with~{icmp-host-prohibited|tcp-reset|icmp6-no-route|foo|port-unreach}]",
    "-j SNAT --to-source {1.2.3.4|1.2.3.4-1.2.3.9|1.2.3.4:1000-2000|:1000|1.2.3.4:70000|foo|2001:db8::5} [{--random|--persistent|--random-fully}]",
    "-j DNAT --to-destination {10.0.0.5|10.0.0.5:80|10.0.0.5:80-90|10.0.0.5-10.0.0.9|:8080|foo:1|2001:db8::5} [--random]",
    "-j MASQUERADE [{--to-ports~1024-2048|--random|--to-ports~5|--to-ports~70000}]",
    "-j REDIRECT [{--to-ports~3128|--to-ports~3128-3130|--to-ports~x|--random}]",
    "-j NETMAP --to {10.5.0.0/16|10.5.0.1|10.5.0.7/24}",
    "-j CT {--notrack|--zone~5|--ctevents~new}",
]
PROTOCOLS = [
    "-p {tcp|udp} [!] {--dport|--sport} " + PORT, "-p {tcp|udp} --sport " + PORT + " --dport " + PORT, "-p udp -m udp --dport " + PORT,
    "-p tcp {--syn|!~--syn|--tcp-flags~SYN,ACK~SYN|--tcp-flags~ALL~NONE|--tcp-option~2|--tcp-flags~SYN|--tcp-flags~FOO~BAR|-m~tcpmss~--mss~1000:1400}",
    "-p {all|0|50|gre|sctp|udplite|foo|47|ospf|esp}", "! -p tcp", "", "", "", "",
]
ICMP = {4: "-p icmp --icmp-type {echo-request|8|8/0|any|destination-unreachable|network-unreachable|300|foo}",
        6: "-p ipv6-icmp --icmpv6-type {echo-request|128|packet-too-big|135/0|foo}"}
ADDRESSES = {4: "{10.0.0.0/24|192.168.1.5|10.0.0.1/255.255.255.0|0.0.0.0/0|172.16.0.0/12|10.1.2.3/8|1.2.3.4,5.6.7.8}",
             6: "{2001:db8::/64|2001:db8:1::5|fe80::/10|::/0|2001:DB8:0::0:7/128}"}
CHAINS = {"filter": ["INPUT", "FORWARD", "OUTPUT"], "mangle": ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
          "nat": ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"], "raw": ["PREROUTING", "OUTPUT"]}

A4 = "{10.0.0.1|10.0.0.0/24|192.168.1.0-192.168.1.9|{~10.0.0.1,~10.0.0.5~}|{~10.0.0.0/8,~192.168.0.0/16~}|!=~10.0.0.1|0.0.0.0/0|10.0.0.1/24|@s4}"
A6 = "{2001:db8::1|2001:db8::/32|{~2001:db8::1,~fe80::/10~}|!=~::1|::/0|@s6|2001:DB8::0:1}"
NPORT = "{80|http|22-80|{~80,~443~}|{~ssh,~1000-2000~}|!=~53|<~1024|>=~1024|@p|70000|domain|{~443,~80,~22~}}"
NMARK = "{1|0x10|!=~0|&~0xff~==~0x10|and~0xff~==~1|0x1-0x5|{~1,~2,~3~}|0x100000000|>~5}"
NDSCP = "{ef|cs1|af41|46|0x2e|{~cs0,~cs1~}|!=~be|64|!=~{~ef,~cs5~}|cs8}"
DEVICE = "{\"eth0\"|eth0|\"eth*\"|{~eth0,~eth1~}|!=~\"lo\"|lo|{~\"ppp*\",~wlan0,~lo~}}"
FLAGS = ("{syn|&~(syn|ack)~==~syn|syn,ack|!~syn|!~syn,ack|&~(fin~|~syn~|~rst~|~ack)~==~syn|syn~/~syn,ack|foo|==~0x2|!=~syn|!=~syn,ack|==~syn,ack"
         "|{~syn,~ack~}|&~syn~==~0|&~syn~!=~0|&~(fin|syn)~!=~syn|syn|ack|&~fin~==~fin|0x12}")
NMATCHES = [
    "ip saddr " + A4, "ip daddr " + A4, "ip6 saddr " + A6, "{tcp|udp|th} {dport|sport} " + NPORT, "{tcp|udp} dport " + NPORT, "tcp flags " + FLAGS,
    "meta mark " + NMARK, "ct mark " + NMARK, "{iifname|oifname|iif|oif|meta~iifname} " + DEVICE,
    "ct state {new|established,related|{~new,~established~}|invalid|!=~new|foo|new,untracked|!~new|==~established,related|!=~established,related}",
    "ip dscp " + NDSCP, "ip6 dscp " + NDSCP, "meta l4proto {tcp|{~tcp,~udp~}|icmp|!=~tcp|ipv6-icmp|17|300|gre}",
    "ip protocol {tcp|udp|{~icmp,~tcp~}|1|!=~esp}", "ip6 nexthdr {tcp|icmpv6|{~udp,~tcp~}}", "ip ttl {1|>~10|{~64,~128~}|256}",
    "meta length {100|<~200|64-128|>~1500}", "icmp type {echo-request|{~echo-request,~echo-reply~}|8|destination-unreachable|foo}",
    "icmpv6 type {echo-request|packet-too-big|128}", "icmp code {0|host-unreachable|{~1,~3~}}", "meta nfproto {ipv4|ipv6}",
    "ct status {dnat|assured,confirmed|!~dnat|&~dnat~==~dnat}", "ct direction original", "ct zone 1", "ct packets 1-5", "ct bytes > 1000",
    "meta skuid {0|root|1000-2000|{~0,~1~}|nosuch}", "ether {saddr~00:11:22:33:44:55|type~ip|type~0x86dd|daddr~{~aa:bb:cc:dd:ee:ff~}}",
    "meta pkttype {host|broadcast|{~host,~multicast~}}", "ip ecn {ce|!=~not-ect|{~ect0,~ect1~}}",
    "ip {frag-off~&~0x1fff~!=~0|length~>~100|id~5|version~4}", "tcp dport vmap { 80 : accept, 22 : drop }",
    "ip saddr . tcp dport { 10.0.0.1 . 80, 10.0.0.2 . 443 }", "ip saddr vmap { 10.0.0.0/24 : jump c1, 10.1.0.0/16 : goto c1 }",
    "iifname vmap { \"eth0\" : accept, \"lo\" : drop }", "udp length {100|>~50|8-20}", "tcp flags & (fin|syn) vmap { fin : accept, syn : drop }",
]
STATEMENTS = [
    "{accept|drop|return}", "{accept|drop|return}", "{jump|goto} c1", "jump nosuch", "continue",
    "meta mark set {1|0x10|meta~mark~&~0xffffff00~|~0x5|ct~mark|meta~mark~or~0x1|meta~mark~and~0xff|meta~mark~xor~3|tcp~dport~map~{~80~:~1,~443~:~2~}}",
    "ct mark set {1|meta~mark|mark|ct~mark~|~0x10|meta~mark~&~0xff}",
    "meta priority set {1:10|0x10010|none|1:0|ip~dscp~map~{~ef~:~1:10,~cs1~:~1:30~}|root|ffff:ffff}",
    "ip dscp set {ef|cs1|46|0|af11|0x3f|cs9}", "counter", "counter packets 5 bytes 100", "counter name c0", "counter {accept|drop}",
    "log [prefix~\"x:~\"]", "log level {debug|foo|info}", "log flags {all|tcp~sequence,options|skuid|ip~options|foo}", "log level info prefix \"x\"",
    "reject [with~{tcp~reset|icmp~type~host-prohibited|icmpx~type~port-unreachable|icmp~port-unreachable|icmpv6~no-route}]",
    "masquerade [{random|to~:1024-2048|persistent|fully-random}]", "snat {to~1.2.3.4|to~1.2.3.4-1.2.3.9|ip~to~1.2.3.4|to~1.2.3.4:1000-2000|1.2.3.4}",
    "dnat {to~10.0.0.5|to~10.0.0.5:80|ip~to~10.0.0.5:80}", "redirect [{to~:3128|to~:3128-3130}]", "notrack", "ip ttl set {64|1|300}",
    "{add|update} @dyn { ip {saddr|daddr} }", "limit rate {10/second|over~5/minute|5~kbytes/second|1~mbytes/second|10/second~burst~5~packets|100/hour}",
    "meta nftrace set 1", "meta mark set 1 meta priority set 1:1", "comment \"hello\"",
]
BASES = [
    "filter hook {input|forward|output} priority {0|filter|-10|security}", "filter hook prerouting priority {raw|mangle|-150|mangle~+~5}",
    "filter hook postrouting priority {mangle|srcnat~-~10}", "nat hook prerouting priority {dstnat|-100}", "nat hook postrouting priority {srcnat|100}",
    "route hook output priority mangle", "nat hook forward priority 0", "filter hook ingress priority 0", "foo hook input priority 0",
    "filter hook input priority foo", "route hook input priority 0",
]


def pick(r, text):
    """The text with each choice made."""
    out, i = "", 0
    while i < len(text):
        if text[i] in "{[" and not text.startswith(("{ ", "{~"), i):
            depth, start, parts, j = 0, i + 1, [], i
            while True:
                # Braces with blanks within are the program's own.
                if text[j] in "{[":
                    depth += 1
                elif text[j] in "}]":
                    depth -= 1
                    if depth == 0:
                        break
                elif text[j] == "|" and depth == 1 and not text[j - 1] == "~" and not inside(text, i, j):
                    parts.append(text[start:j])
                    start = j + 1
                j += 1
            parts.append(text[start:j])
            if text[i] == "{" or r.random() < 0.3:
                out += pick(r, r.choice(parts))
            i = j + 1
        else:
            out += text[i]
            i += 1
    return out.replace("~", " ")


def inside(text, start, at):
    """Whether a place stands within parentheses that began behind another."""
    return text.count("(", start, at) > text.count(")", start, at)


def tables(r, family):
    program = "iptables" if family == 4 else "ip6tables"
    address = ADDRESSES[family]
    lines = []
    for _ in range(3):
        table = r.choice(["filter", "filter", "mangle", "mangle", "nat", "raw"])
        head = f"{program} -t {table}" if table != "filter" or r.random() < 0.2 else program
        chains = CHAINS[table]
        lines += [f"{program} -t {table} -F", f"{program} -t {table} -X", f"{head} -N mych"]

        def rule(short=False):
            parts = [] if short else [pick(r, r.choice(PROTOCOLS + [ICMP[family]]))]
            for option, p in ("{-s|--source|--src}", 0.4), ("{-d|--destination|--dst}", 0.4):
                if r.random() < p:
                    parts.append(pick(r, f"[!] {option} {address}"))
            for option in "-i", "-o":
                if r.random() < 0.25:
                    parts.append(pick(r, f"[!] {option} {{eth0|eth+|lo|ppp0|averyverylongname}}"))
            if r.random() < 0.05:
                parts.append(pick(r, "[!] -f"))
            if not short:
                parts.append(pick(r, r.choice(MATCHES)))
            parts.append(pick(r, r.choice(TARGETS)))
            if r.random() < 0.15:
                r.shuffle(parts)
            return " ".join(parts)

        for _ in range(9):
            chain = r.choice(chains * 2 + ["mych"]) if r.random() < 0.95 else r.choice(["FOO", "POSTROUTING", "PREROUTING"])
            kind = r.randrange(20)
            if kind < 12:
                lines.append(f"{head} {r.choice(['-A', '-A', '-I'])} {chain} {rule()}")
            elif kind == 12:
                lines.append(f"{head} -I {chain} {r.choice('1250x')} {rule(True)}")
            elif kind == 13:
                lines.append(f"{head} -D {chain} {r.choice('1270')}")
            elif kind == 14:
                lines.append(f"{head} -R {chain} {r.choice('129')} {rule(True)}")
            elif kind == 15:
                lines.append(f"{head} -P {chain} {r.choice(['DROP', 'ACCEPT', 'QUEUE', 'mych'])}")
            elif kind == 16:
                lines.append(f"{head} {r.choice(['-L', '-S', '-nvL', '-vS', '-Lx'])} {chain if r.random() < 0.4 else ''}")
            elif kind == 17:
                lines.append(head + " " + r.choice(["-N other", "-E other third", "-X other", "-X mych", "-N INPUT", "-N -foo", "-N MARK", "-E mych other"]))
            else:
                lines.append(f"{head} {r.choice(['-C', '-D'])} {chain} {rule(True)}")
        lines += [f"{program} -t {table} -nvL --line-numbers", f"{program} -t {table} -L", f"{program} -t {table} -S"]
    return lines


def nft(r):
    family = r.choice(["ip", "inet", "inet", "ip6", "inet"])
    lines = [f"add table {family} t", f"add chain {family} t c1", f"add set {family} t s4 {{ type ipv4_addr; flags interval; elements = {{ 10.9.0.0/16 }} }}",
             f"add set {family} t s6 {{ type ipv6_addr; flags interval; }}", f"add set {family} t p {{ type inet_service; }}",
             f"add set {family} t dyn {{ type ipv4_addr; flags dynamic; size 100; }}", f"add counter {family} t c0"]

    def base(name):
        policy = r.choice(["", "", "policy drop; ", "policy accept; "])
        return f"add chain {family} t {name} {{ type {pick(r, r.choice(BASES))}; {policy}}}"

    def rule():
        parts = [pick(r, r.choice(NMATCHES)) for _ in range(r.choice([0, 1, 1, 2, 2, 3]))]
        parts += [pick(r, r.choice(STATEMENTS)) for _ in range(r.choice([1, 1, 1, 2]))]
        return " ".join(parts) + (' comment "x y"' if r.random() < 0.1 else "")

    lines.append(base("b"))
    for _ in range(14):
        chain = r.choice(["b", "b", "b", "c1"])
        kind = r.randrange(16)
        if kind < 11:
            lines.append(f"{r.choice(['add', 'add', 'insert'])} rule {family} t {chain} {rule()}")
        elif kind == 11:
            lines.append(r.choice([
                pick(r, f"add element {family} t s4 {{ {{10.1.0.0/16|10.9.1.1|1.2.3.4|10.0.0.1-10.0.0.5}} }}"),
                pick(r, f"add element {family} t p {{ {{80|http,~ssh|1-5|70000}} }}"), f"delete element {family} t p {{ 80 }}",
                pick(r, f"get element {family} t {{s4~{{~10.9.0.1~}}|p~{{~80~}}|s4~{{~10.1.2.0/24~}}}}"), f"flush set {family} t p"]))
        elif kind == 12:
            lines.append(r.choice([
                f"add set {family} t n1 {{ type ipv4_addr . inet_service; }}", f"add map {family} t m1 {{ type ipv4_addr : mark; elements = {{ 1.2.3.4 : 5 }} }}",
                f"add set {family} t n2 {{ type ipv4_addr; flags timeout; timeout 1h; gc-interval 10m; }}",
                f"add set {family} t n5 {{ type mark; flags constant; elements = {{ 1, 2 }} }}",
                f"add set {family} t n6 {{ type ifname; elements = {{ {r.choice(['eth0, lo, wlan0, br-lan', 'eth0, ppp*'])} }} }}",
                f"add set {family} t n7 {{ type inet_service; flags interval; auto-merge; elements = {{ 1-5, 4-9 }} }}"]))
        elif kind == 13:
            lines.append(r.choice([f"list chain {family} t b", f"-a list chain {family} t b", f"list set {family} t s4", "list sets", "list chains", "list tables",
                                   f"-n list chain {family} t b", "list counters", f"-s list table {family} t", "list maps"]))
        elif kind == 14:
            lines.append(r.choice([f"delete rule {family} t b handle {r.randrange(1, 20)}", f"flush chain {family} t b", f"rename chain {family} t c1 c9",
                                   f"delete set {family} t s4", f"create chain {family} t c1", f"create table {family} t", f"delete counter {family} t c0"]))
        else:
            lines.append(r.choice([f"add chain {family} t c2", base("b2"), f"add counter {family} t k2", f"add rule {family} t b index 0 accept"]))
    lines.append("list ruleset")
    return ["nft " + (line if line.startswith("-") else shlex.quote(line)) for line in lines]


def record(seed):
    r = random.Random(seed)
    lines = tables(r, 4) if seed < 100 else tables(r, 6) if seed < 200 else nft(r)
    steps = []
    for name in "eth0", "eth1":
        subprocess.run(["ip", "link", "add", name, "type", "dummy"], check=True)
    for line in lines:
        words = shlex.split(line)
        program = words[0].replace("tables", "tables-legacy")
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, errors="replace", timeout=20)
        steps.append({"run": line, "out": done.stdout, "err": done.stderr, "status": done.returncode})
    return {"seed": seed, "steps": steps}


def main():
    first, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with open(out, "w") as f:
        for seed in range(first, first + count):
            if "--one" in sys.argv:
                f.write(json.dumps(record(seed), separators=(",", ":")) + "\n")
                continue
            part = subprocess.run(["unshare", "-n", sys.executable, sys.argv[0], str(seed), "1", "/dev/stdout", "--one"],
                                  check=True, capture_output=True, text=True)
            f.write(part.stdout)
            f.flush()


if __name__ == "__main__":
    main()
