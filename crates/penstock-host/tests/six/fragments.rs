//! Fragments, against `vectors/stack/fragments6.jsonl` (made by `vectors/stack/fragments6.py`): those for the router, those it sends on as they are or, where
//! it tracks connections, put together and cut again, those it makes, errors about them, and what its rules have counted.

use super::*;

/// What counters of rules say, in the order of the rules.
fn counters(rules: &str) -> Vec<(u64, u64)> {
    let mut words = rules.split_whitespace();
    let mut out = Vec::new();
    while let Some(word) = words.next() {
        if word == "counter" && words.next() == Some("packets") {
            let packets = words.next().and_then(|n| n.parse().ok()).expect("a number of packets");
            let bytes = words.nth(1).and_then(|n| n.parse().ok()).expect("a number of bytes");
            out.push((packets, bytes));
        }
    }
    out
}

fn play(case: &Value) -> Result<usize, String> {
    let mut router = Case::new(&case["setup"]);
    router.cuts = true;
    let seen = router.play(case["steps"].as_array().expect("steps"))?;
    let theirs: Vec<(u64, u64)> = serde_json::from_value(case["counters"].clone()).expect("counters");
    let listed = router.host.exec("nft list ruleset", router.now).stdout;
    match counters(&listed) {
        ours if ours == theirs => Ok(seen),
        ours => Err(format!("counters\n  linux {theirs:?}\n  ours  {ours:?}\n{listed}")),
    }
}

#[test]
fn fragments_go_as_linux_s_do() {
    let path = format!("{}/../../vectors/stack/fragments6.jsonl", env!("CARGO_MANIFEST_DIR"));
    let all = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (mut count, mut packets, mut fragments, mut wrong) = (0, 0, 0, Vec::new());
    for line in all.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        count += 1;
        fragments += line.matches("\"frag\"").count();
        match play(&case) {
            Ok(seen) => packets += seen,
            Err(said) => wrong.push(format!("seed {}: {said}", case["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 60 && packets >= 800 && fragments >= 2000, "{count} {packets} {fragments}");
}

/// What `ip6tables` 1.8.9 showed of each rule: `-S`, and `-nvL` behind the addresses.
const SHOWN: &[(&str, &str, &str)] = &[
    ("-m frag --fragid 5", "-m frag --fragid 5", "frag id:5"),
    ("-m frag --fragid 5:9", "-m frag --fragid 5:9", "frag ids:5:9"),
    ("-m frag ! --fragid 5:9", "-m frag ! --fragid 5:9", "frag ids:!5:9"),
    (
        "-m frag --fraglen 8 --fragres --fragfirst --fragmore",
        "-m frag --fraglen 8 --fragres --fragfirst --fragmore",
        "frag  length:8 reserved first more",
    ),
    ("-m frag --fraglast", "-m frag --fraglast", "frag  last"),
    ("-m frag ! --fraglen 3", "-m frag ! --fraglen 3", "frag  length:!3"),
    ("-m frag --fragid 5:", "-m frag --fragid 5:4294967295", "frag ids:5:4294967295"),
    ("-m frag --fragid :5", "-m frag --fragid 0:5", "frag ids:0:5"),
    (
        "-m ipv6header --header frag,dst --soft",
        "-m ipv6header --header ipv6-opts,ipv6-frag --soft",
        "ipv6header flags:0x50 soft",
    ),
    ("-m ipv6header ! --header hop", "-m ipv6header ! --header hop-by-hop", "ipv6header flags:!0x80"),
    ("-m ipv6header --header none", "-m ipv6header --header ipv6-nonxt", "ipv6header flags:0x02"),
    ("-m ipv6header --header 44", "-m ipv6header --header ipv6-frag", "ipv6header flags:0x10"),
    ("-m ipv6header --header prot", "-m ipv6header --header protocol", "ipv6header flags:0x01"),
];

#[test]
fn rules_on_headers_read_as_ip6tables_writes_them() {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    for (given, saved, listed) in SHOWN {
        let mut run = |line: &str| host.exec(line, Time::ZERO);
        let done = run(&format!("ip6tables -A INPUT {given}"));
        assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{given}");
        assert_eq!(run("ip6tables -S INPUT").stdout.lines().last(), Some(&*format!("-A INPUT {saved}")));
        let table = run("ip6tables -nvL INPUT").stdout;
        let last = table.lines().last().unwrap_or_default();
        assert!(last.ends_with(&format!("::/0                 {listed}")), "{given}: {last}");
        run("ip6tables -F INPUT");
    }
    for (given, said) in [
        (
            "-m frag --fragmore --fraglast",
            "option \"--fragmore\" cannot be used together with \"--fraglast\"",
        ),
        (
            "-m frag --fragid x",
            "bad value for option \"--fragid\" near \"x\", or out of range (0-4294967295)",
        ),
        ("-m ipv6header", "ipv6header: option \"--header\" must be specified"),
        ("-m ipv6header --header foo", "unknown header `foo' specified"),
        ("-m hbh --hbh-len 8", "Couldn't load match `hbh'"),
    ] {
        let done = host.exec(&format!("ip6tables -A INPUT {given}"), Time::ZERO);
        assert!(done.status == 2 && done.stderr.contains(said), "{given}: {}", done.stderr);
    }
}

/// Which rules meet the first, the middle and the last fragment of a datagram, and one that is whole (`frag_mt6`, `ipv6header_mt6`).
#[test]
fn rules_meet_the_fragments_they_name() {
    let rules = [
        ("-m frag", [1, 1, 1, 0]),
        ("-m frag --fragfirst", [1, 0, 0, 0]),
        ("-m frag --fragmore", [1, 1, 0, 0]),
        ("-m frag --fraglast", [0, 0, 1, 0]),
        ("-m frag --fragid 7:9", [1, 1, 1, 0]),
        ("-m frag ! --fragid 7", [0, 0, 0, 0]),
        ("-m ipv6header --header frag,prot", [1, 1, 1, 0]),
        ("-m ipv6header --header frag --soft", [1, 1, 1, 0]),
        ("-m ipv6header --header prot", [0, 0, 0, 1]),
        ("-m ipv6header ! --header frag --soft", [0, 0, 0, 1]),
        ("-p udp", [1, 1, 1, 1]),
        ("-p udp --dport 5001", [1, 0, 0, 1]),
        ("-p 44", [0, 0, 0, 0]),
    ];
    let setup = json!([
        "ip link set lo up",
        "ip link set lan0 address 02:00:00:00:01:01",
        "ip link set lan0 up",
        "ip addr add fd00:1::1/64 dev lan0"
    ]);
    let mut router = Case::new(&setup);
    for (words, _) in rules {
        assert_eq!(router.host.exec(&format!("ip6tables -A INPUT {words}"), Time::ZERO).status, 0, "{words}");
    }
    let whole = json!({ "proto": "udp", "src": "fd00:1::11", "dst": "fd00:1::1", "to": "02:00:00:00:01:01",
        "hl": 64, "data": 3000, "sport": 1000, "dport": 5001 });
    let piece = |off: u64, len: u64| {
        let mut p = whole.clone();
        p["frag"] = json!({ "off": off, "more": u8::from(off + len < 3008), "id": 7, "len": len });
        p
    };
    let mut short = whole.clone();
    short["data"] = json!(100);
    let mut before = vec![0u64; rules.len()];
    for (n, p) in [piece(0, 1448), piece(1448, 1448), piece(2896, 112), short].iter().enumerate() {
        let ifindex = router.host.ifindex("lan0").expect("a device");
        router.with(|h, cx| h.receive(ifindex, Box::new(build(p)), cx));
        let table = router.host.exec("ip6tables -nvxL INPUT", router.now).stdout;
        let count = |line: &str| line.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(0);
        let now: Vec<u64> = table.lines().skip(2).map(count).collect();
        for ((words, want), (now, before)) in rules.iter().zip(now.iter().zip(&before)) {
            assert_eq!(now - before, want[n], "{words}, packet {n}");
        }
        before = now;
    }
}
