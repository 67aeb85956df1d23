//! The command as somebody types it: what it prints, where, and its exit status.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn penstock(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(words)
        .current_dir(folder)
        .env("PENSTOCK_STATE", folder.join("state"))
        .env_remove("PENSTOCK_KERNEL")
        .output()
        .unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("penstock-cli-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const TWO: &str = r#"
title    = "Two"
duration = "3s"
[host.a]
eth0 = "10.0.0.1/24"
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends  = ["a:eth0", "b:eth0"]
rate  = "10mbit"
delay = "2ms"
[[app]]
on  = "a"
run = "ping -c 2 10.0.0.2"
[[expect]]
what  = "a ping rtt min"
value = "VALUE"
"#;

#[test]
fn a_folder_is_lent_to_a_script() {
    let folder = scratch("lent");
    std::fs::create_dir_all(folder.join("conf/more")).unwrap();
    std::fs::write(folder.join("conf/a"), "RATE=1mbit\n").unwrap();
    std::fs::write(folder.join("conf/more/b"), "B=2\n").unwrap();
    std::fs::write(
        folder.join("s.sh"),
        ". /etc/shaper/a; . ./conf/more/b; echo $RATE $B; find /etc/shaper -type f | sort\n",
    )
    .unwrap();
    let done = penstock(&folder, &["shell", "--file", "/etc/shaper=conf", "--file", "conf", "s.sh"]);
    assert_eq!(text(&done.stdout), "1mbit 2\n/etc/shaper/a\n/etc/shaper/more/b\n", "{}", text(&done.stderr));
    let done = penstock(&folder, &["shell", "--file", "/x=nosuch", "s.sh"]);
    assert_eq!(
        (done.status.code(), text(&done.stderr).contains("cannot read nosuch")),
        (Some(2), true),
        "{done:?}"
    );
    let _ = std::fs::remove_dir_all(folder);
}

/// The lines that wg-quick 1.0.20210914 prints for such a file, in their order.
#[test]
fn wg_quick_brings_a_device_up_and_down() {
    let folder = scratch("wg-quick");
    let script = r#"
cat > /etc/wireguard/wg0.conf <<'EOF'
[Interface]
PrivateKey = 6CfEgs6v9bfsFnxXCR4Rlk2Z0N4L5vcZ0l1M8sC5gXU=
Address = 10.8.0.2/24, fd08::2/64
PostUp = iptables -A INPUT -i %i -j ACCEPT; echo up %i
PostDown = iptables -D INPUT -i %i -j ACCEPT
[Peer]
PublicKey = swyyLblxjNna0JyaXXEDtwPsDw4V6tmqhC3Akh3t4zA=
Endpoint = 198.51.100.2:51820
AllowedIPs = 0.0.0.0/0, 192.168.0.0/16
EOF
ip link add wan0 type dummy
ip addr add 192.0.2.2/24 dev wan0
ip link set wan0 mtu 1492 up
ip route add default via 192.0.2.1
wg-quick up wg0
ip rule
wg show wg0 fwmark
wg-quick up wg0
wg-quick down wg0
ip rule
iptables -S
nft list tables
"#;
    std::fs::write(folder.join("s.sh"), script).unwrap();
    let done = penstock(&folder, &["shell", "--host", "state", "s.sh"]);
    let printed = "\
[#] ip link add wg0 type wireguard
[#] wg setconf wg0 /dev/fd/63
[#] ip -4 address add 10.8.0.2/24 dev wg0
[#] ip -6 address add fd08::2/64 dev wg0
[#] ip link set mtu 1412 up dev wg0
[#] ip -4 route add 192.168.0.0/16 dev wg0
[#] wg set wg0 fwmark 51820
[#] ip -4 route add 0.0.0.0/0 dev wg0 table 51820
[#] ip -4 rule add not fwmark 51820 table 51820
[#] ip -4 rule add table main suppress_prefixlength 0
[#] sysctl -q net.ipv4.conf.all.src_valid_mark=1
[#] nft -f /dev/fd/63
[#] iptables -A INPUT -i wg0 -j ACCEPT; echo up wg0
wg-quick: `wg0' already exists
[#] ip -4 rule delete table 51820
[#] ip -4 rule delete table main suppress_prefixlength 0
[#] ip link delete dev wg0
[#] nft -f /dev/fd/63
[#] iptables -D INPUT -i wg0 -j ACCEPT
";
    assert_eq!(text(&done.stderr), printed);
    let shown = "\
up wg0
0:\tfrom all lookup local
32764:\tfrom all lookup main suppress_prefixlength 0
32765:\tnot from all fwmark 0xca6c lookup 51820
32766:\tfrom all lookup main
32767:\tfrom all lookup default
0xca6c
0:\tfrom all lookup local
32766:\tfrom all lookup main
32767:\tfrom all lookup default
-P INPUT ACCEPT
-P FORWARD ACCEPT
-P OUTPUT ACCEPT
";
    assert_eq!(text(&done.stdout), shown);
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn the_exit_status_is_the_judgement() {
    let folder = scratch("status");
    for (value, status, word) in [("4ms..5ms", 0, "met"), ("<4ms", 1, "NOT MET")] {
        std::fs::write(folder.join("two.toml"), TWO.replace("VALUE", value)).unwrap();
        let done = penstock(&folder, &["run", "two.toml"]);
        assert_eq!(done.status.code(), Some(status), "{}", text(&done.stderr));
        let shown = text(&done.stdout);
        assert!(shown.contains(&format!("{word}  a ping rtt min")), "{shown}");
        assert!(shown.ends_with("runs/two/report.html\n"), "{shown}");
        assert!(done.stderr.is_empty(), "{}", text(&done.stderr));
    }
    let done = penstock(&folder, &["run", "two.toml", "--json", "--seed", "5", "--out", "elsewhere"]);
    let record: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((record["seed"].as_u64(), record["expects"][0]["ok"].as_bool()), (Some(5), Some(false)));
    assert_eq!(std::fs::read(folder.join("elsewhere/record.json")).unwrap(), done.stdout);
    let done = penstock(&folder, &["report", "runs/two", "elsewhere"]);
    assert_eq!(done.status.code(), Some(0));
    assert!(text(&done.stdout).contains("a ping rtt mean"), "{}", text(&done.stdout));
    std::fs::remove_dir_all(folder).unwrap();
}

/// What cannot work is said before the run on standard error, and behind it in the summary; the run has failed then.
#[test]
fn a_run_whose_programs_failed_has_failed() {
    let folder = scratch("failed");
    let nobody =
        TWO.replace("VALUE", "4ms..5ms") + "[[app]]\non = \"a\"\nrun = \"iperf3 -c 10.0.0.2 -t 1\"\n";
    for (more, status) in [("", 1), ("may_fail = true\n", 0)] {
        std::fs::write(folder.join("nobody.toml"), format!("{nobody}{more}")).unwrap();
        let done = penstock(&folder, &["run", "nobody.toml"]);
        let (said, shown) = (text(&done.stderr), text(&done.stdout));
        assert_eq!(done.status.code(), Some(status), "{said}{shown}");
        let want = "a iperf3 cannot work: nobody on b listens at tcp port 5201";
        assert_eq!((said.contains(want), shown.contains(want)), (status == 1, status == 1), "{said}{shown}");
        let failed = "failed: a iperf3 (iperf3 -c 10.0.0.2 -t 1), exit status 1";
        assert_eq!(shown.contains(failed), status == 1, "{shown}");
        let page = std::fs::read_to_string(folder.join("runs/nobody/report.html")).unwrap();
        assert_eq!((page.contains("✗ cannot work"), page.contains("✗ failed")), (status == 1, status == 1));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn errors_go_to_standard_error_with_status_2() {
    let folder = scratch("errors");
    let check = |words: &[&str], want: &str| {
        let done = penstock(&folder, words);
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(done.stdout.is_empty(), "{words:?}: {}", text(&done.stdout));
        let said = text(&done.stderr);
        assert!(said.contains(want), "{words:?}\nwant {want}\nsaid {said}");
    };
    std::fs::write(folder.join("wrong.toml"), "durration = \"5s\"\n").unwrap();
    std::fs::write(folder.join("two.toml"), TWO.replace("VALUE", "4ms..5ms")).unwrap();
    let refused = TWO.replace("[host.b]", "setup = \"tc qdisc add dev eth0 root tbf rate 1mbit\"\n[host.b]");
    std::fs::write(folder.join("refused.toml"), refused.replace("VALUE", "<1s")).unwrap();
    std::fs::write(folder.join("list.json"), "[1").unwrap();
    check(&["run", "wrong.toml"], "wrong.toml:1:1: an experiment has no key \"durration\"");
    check(&["run", "none.toml"], "cannot read none.toml: there is no such file");
    check(&["run", "two.toml", "--on", "moon"], "there is no ground \"moon\"");
    check(&["run", "refused.toml"], "the setup failed; nothing was run");
    check(&["run", "two.toml", "--out", "."], "is not a run folder");
    check(&["report", "none"], "none is not a run folder: it has no record.json");
    check(&["replay", "list.json"], "list.json is not JSON");
    check(&["send", "127.0.0.1", "--udp", "--for", "1"], "it has no unit: write 1s or 1ms");
    check(&["nonsense"], "unrecognized subcommand");
    assert!(!folder.join("runs").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_tools_have_their_own_words_and_status() {
    let folder = scratch("tools");
    let tc = |words: &[&str]| penstock(&folder, &[&["tc"], words].concat());
    let done = tc(&["qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "10"]);
    assert_eq!((done.status.code(), done.stdout.len(), done.stderr.len()), (Some(0), 0, 0));
    let done = tc(&["qdisc", "show", "dev", "eth0"]);
    assert!(
        text(&done.stdout).starts_with("qdisc htb 1: root refcnt 2 r2q 10 default 0x10"),
        "{}",
        text(&done.stdout)
    );
    let done = tc(&["qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb"]);
    assert_eq!(done.status.code(), Some(2));
    let first = text(&done.stderr).lines().next().unwrap_or_default().to_owned();
    assert_eq!(first, "Error: Exclusivity flag on, cannot modify.");
    let done = tc(&["q"]);
    assert_eq!(done.status.code(), Some(0));
    let done = tc(&["nonsense"]);
    assert_eq!(done.status.code(), Some(255));
    assert!(
        text(&done.stderr).starts_with("Object \"nonsense\" is unknown, try \"tc help\".\n"),
        "{}",
        text(&done.stderr)
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_capture_goes_through_a_script() {
    let folder = scratch("capture");
    std::fs::write(
        folder.join("shaper.sh"),
        "echo shaping\ntc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 2000 limit 3000\n",
    )
    .unwrap();
    std::fs::write(folder.join("p.jsonl"), "{\"len\": 1000, \"repeat\": 8}\n").unwrap();
    let words = ["replay", "p.jsonl", "--through", "shaper.sh", "--pcap-out", "fates.pcapng"];
    let done = penstock(&folder, &words);
    let shown = text(&done.stdout);
    assert!(
        shown.starts_with("8 packets in 0.000 s through eth0: 5 left, 3 dropped\n"),
        "{shown}{}",
        text(&done.stderr)
    );
    assert_eq!(text(&done.stderr), "shaping\n");
    // What it wrote goes through the machine that lives between calls, where nothing is set up.
    let again = penstock(&folder, &["replay", "fates.pcapng", "--dev", "eth1", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&answer["packets"], &answer["departures"][7]["delay_ns"]), (&8.into(), &0.into()));
    std::fs::write(folder.join("bad.sh"), "tc qdisc add dev eth0 root tbf rate 1mbit\n").unwrap();
    let refused = penstock(&folder, &["replay", "p.jsonl", "--through", "bad.sh"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("nothing was replayed"), "{}", text(&refused.stderr));
    let none = penstock(&folder, &["replay", "fates.pcapng"]);
    assert!(text(&none.stderr).contains("no device has a qdisc of its own"), "{}", text(&none.stderr));
    let _ = std::fs::remove_dir_all(folder);
}

/// All files below a folder with their bytes.
fn files(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn repeated_runs_are_the_same_however_many_run_at_a_time() {
    let folder = scratch("repeat");
    let of = |name: &str, value: &str, jobs: &str| {
        std::fs::write(folder.join(name), TWO.replace("VALUE", value)).unwrap();
        let done = penstock(&folder, &["run", name, "--repeat", "5", "--jobs", jobs, "--out", "out"]);
        let (out, bytes) = (text(&done.stdout), files(&folder.join("out")));
        std::fs::remove_dir_all(folder.join("out")).unwrap();
        (done.status.code(), out, text(&done.stderr), bytes)
    };
    let one = of("two.toml", ">1ms", "1");
    assert_eq!((one.0, one.2.as_str()), (Some(0), ""));
    assert!(one.1.starts_with("out/1\nout/2\nout/3\nout/4\nout/5\n"), "{}", one.1);
    let seeds = one.3.iter().filter(|(name, _)| name.ends_with("record.json")).map(|(_, bytes)| {
        let record: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        record["seed"].as_u64().unwrap()
    });
    let seeds: Vec<u64> = seeds.collect();
    assert!(seeds.windows(2).all(|s| s[1] == s[0] + 1) && seeds.len() == 5, "{seeds:?}");
    for jobs in ["2", "8"] {
        assert!(of("two.toml", ">1ms", jobs) == one, "{jobs} at a time");
    }
    // One that is not met counts, whichever it is.
    assert_eq!(of("two.toml", ">1s", "3").0, Some(1));
    // What cannot be set up is told once.
    let broken =
        format!("{}\n[host.c]\neth0 = \"10.0.1.1/24\"\nsetup = \"tc qdisc add dev eth9 root sfq\"\n", TWO);
    std::fs::write(folder.join("broken.toml"), broken.replace("VALUE", ">1ms")).unwrap();
    let done = penstock(&folder, &["run", "broken.toml", "--repeat", "4", "--jobs", "4", "--out", "none"]);
    let said = text(&done.stderr);
    assert_eq!((done.status.code(), said.matches("Cannot find device").count()), (Some(2), 1), "{said}");
    assert!(!folder.join("none/1").exists());
    let done = penstock(&folder, &["run", "two.toml", "--repeat", "2", "--jobs", "2", "--on", "kernel"]);
    assert!(text(&done.stderr).contains("--jobs: on kernel one run at a time"), "{}", text(&done.stderr));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn packetdrill_runs_scripts_and_says_what_differs() {
    let folder = scratch("packetdrill");
    let script = |mss: u32| {
        format!(
            "`../common.sh`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 1000 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss {mss}>\n"
        )
    };
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    std::fs::create_dir_all(folder.join("tcp")).unwrap();
    write("common.sh", "#!/bin/bash\nsysctl -q net.ipv4.tcp_sack=0\n");
    write("tcp/good.pkt", &script(1460));
    write("tcp/bad.pkt", &script(1400));
    write("tcp/none.pkt", "0 < udp (1)\n");
    let run = |words: &[&str]| penstock(&folder, &[&["packetdrill"][..], words].concat());
    let bad = run(&["--allow-path", ".", "tcp/bad.pkt", "tcp/good.pkt"]);
    let said = text(&bad.stdout);
    assert_eq!(bad.status.code(), Some(1), "{said}{}", text(&bad.stderr));
    assert!(
        said.contains("FAILED  tcp/bad.pkt:6: ") && said.contains("expected: <mss 1400> actual: <mss 1460>"),
        "{said}"
    );
    assert!(said.ends_with("passed  tcp/good.pkt\n1 of 2 scripts passed\n"), "{said}");
    // The file beside it lies outside, and is not read.
    let refused = run(&["tcp/good.pkt"]);
    let said = text(&refused.stdout);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("not read: ../common.sh: it lies outside"), "{said}");
    let none = run(&["--json", "tcp/none.pkt"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stdout).contains("packets of udp are not run here"), "{}", text(&none.stdout));
    let _ = std::fs::remove_dir_all(folder);
}
