use super::*;
use crate::iptables::{Chain, Counted, Edit, list, save};

fn words(line: &str) -> Vec<Word> {
    line.split_whitespace().map(|w| Word::new(w, 0)).collect()
}
fn ok(line: &str) -> Command {
    parse(&words(line), Kernel::V6_12).unwrap_or_else(|f| panic!("{line}: {}", f.stderr))
}
fn stderr(line: &str, kernel: Kernel) -> (String, i32) {
    let f = parse(&words(line), kernel).expect_err(line);
    (f.message().to_owned(), f.exit)
}
fn rule(line: &str) -> Rule {
    match ok(line).action {
        Action::Append(_, mut rules, _) => rules.remove(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_virtual_lab_s_lines() {
    let c = ok("iptables -t mangle -N INSHAPER");
    assert_eq!((c.table, c.action), (Table::Mangle, Action::NewChain("INSHAPER".into())));
    let c = ok("iptables -t mangle -I PREROUTING -i eth1 -j INSHAPER");
    let Action::Insert(chain, 1, mut rules, _) = c.action else { panic!() };
    let r = rules.remove(0);
    assert_eq!(chain, "PREROUTING");
    assert!(r.input.as_ref().is_some_and(|i| i.matches("eth1") && !i.matches("eth0")));
    assert_eq!(r.target, Target::Jump("INSHAPER".into()));
    let r = rule("iptables -t mangle -A INSHAPER -p tcp --dport 5001 -j MARK --set-mark 10");
    assert_eq!(r.target, Target::Edit(Edit::Mark { value: 10, mask: u32::MAX }));
    assert!(matches!(r.matches[0], Match::Tcp(t) if t.dport.matches(5001) && !t.dport.matches(5002)));
    let r = rule("iptables -t mangle -A INSHAPER -m mark --mark 0 -j MARK --set-mark 30");
    assert_eq!(r.matches[0], Match::Mark { mark: 0, mask: u32::MAX, invert: false });
}

#[test]
fn saved_rules_read_as_iptables_writes_them() {
    let check = |given: &str, want: &str| {
        let rule = rule(&format!("iptables -A X {given}"));
        let chain = Chain {
            name: "X".into(),
            policy: None,
            packets: 0,
            bytes: 0,
            references: 0,
            rules: vec![Counted { rule, packets: 0, bytes: 0 }],
        };
        let text = save(&[&chain], &Listing::default(), Family::Ip);
        assert_eq!(text, format!("-N X\n-A X{want}\n"), "{given}");
        // What was written is read back as the same rule.
        let again = save(
            &[&Chain {
                rules: vec![Counted {
                    rule: self::rule(&format!("iptables -A X{want}")),
                    packets: 0,
                    bytes: 0,
                }],
                ..chain
            }],
            &Listing::default(),
            Family::Ip,
        );
        assert_eq!(again, text);
    };
    check(
        "-s 10.0.0.1 ! -d 10.1.0.0/16 -i eth+ ! -o eth1",
        " -s 10.0.0.1/32 ! -d 10.1.0.0/16 -i eth+ ! -o eth1",
    );
    check(
        "-p tcp --sport 1:5 ! --dport 80 --syn -j ACCEPT",
        " -p tcp -m tcp --sport 1:5 ! --dport 80 --tcp-flags FIN,SYN,RST,ACK SYN -j ACCEPT",
    );
    check(
        "-p udp -m multiport --dports 53,80:90 -j RETURN",
        " -p udp -m multiport --dports 53,80:90 -j RETURN",
    );
    check("-p icmp --icmp-type echo-request", " -p icmp -m icmp --icmp-type 8");
    check("-m dscp --dscp-class ef -j DSCP --set-dscp 10", " -m dscp --dscp 0x2e -j DSCP --set-dscp 0x0a");
    check(
        "-m tos --tos Minimize-Delay -j TOS --set-tos 0x08",
        " -m tos --tos 0x10/0x3f -j TOS --set-tos 0x08/0xff",
    );
    check(
        "-m length --length 100:200 -j CLASSIFY --set-class 1:a0",
        " -m length --length 100:200 -j CLASSIFY --set-class 0001:00a0",
    );
    check("-j MARK --or-mark 4", " -j MARK --set-xmark 0x4/0x4");
    check("-j MARK --and-mark 0xff", " -j MARK --set-xmark 0x0/0xffffff00");
    check("-j MARK --xor-mark 3", " -j MARK --set-xmark 0x3/0x0");
    check("-j MARK --set-mark 1/2", " -j MARK --set-xmark 0x1/0x3");
    check(
        "-m limit --limit 10/minute -m comment --comment hi -g Y",
        " -m limit --limit 10/min -m comment --comment hi -g Y",
    );
    check("! -p 17 -m ttl --ttl-lt 5", " ! -p udp -m ttl --ttl-lt 5");
}

#[test]
fn an_inversion_behind_its_option_is_1_4_s_alone() {
    let line = "iptables -A X -s ! 10.0.0.0/8 -p ! tcp";
    let Ok(Command { action: Action::Append(_, r, _), .. }) = parse(&words(line), Kernel::V2_6_35) else {
        panic!()
    };
    let r = &r[0];
    assert!(r.src.is_some_and(|a| a.invert) && r.protocol == Some((6, true)));
    let (message, exit) = stderr(line, Kernel::V6_12);
    assert_eq!((message.as_str(), exit), ("Bad argument `10.0.0.0/8'", 2));
}

#[test]
fn refusals_in_the_program_s_words() {
    let six = |line: &str, want: &str, exit: i32| {
        let (message, code) = stderr(line, Kernel::V6_12);
        assert_eq!(
            (message.as_str(), code),
            (format!("iptables v1.8.9 (legacy): {want}").as_str(), exit),
            "{line}"
        );
    };
    six("iptables", "no command specified", 2);
    six("iptables -A INPUT --dport 80", "unknown option \"--dport\"", 2);
    six("iptables -A INPUT --foo", "unknown option \"--foo\"", 2);
    six("iptables -A INPUT -p tcp --dport x", "invalid port/service `x' specified", 2);
    six("iptables -A INPUT -p tcp --dport 70000", "invalid port/service `70000' specified", 2);
    six(
        "iptables -t foo -L",
        "can't initialize iptables table `foo': Table does not exist (do you need to insmod?)",
        3,
    );
    six("iptables -A INPUT -o eth0", "Can't use -o with INPUT", 2);
    six("iptables -A", "option \"-A\" requires an argument", 2);
    six(
        "iptables -A INPUT -j MARK",
        "MARK: One of the --set-xmark, --{and,or,xor,set}-mark options is required",
        2,
    );
    six("iptables -A INPUT -m foo", "Couldn't load match `foo':No such file or directory", 2);
    six("iptables -A INPUT -p foo", "unknown protocol \"foo\" specified", 2);
    six("iptables -A INPUT -s 10.0.0.0/40", "invalid mask `40' specified", 2);
    six("iptables -A INPUT -m mark -j ACCEPT", "mark: option \"--mark\" must be specified", 2);
    six("iptables -D INPUT 0", "Invalid rule number `0'", 2);
    six(
        "iptables -N aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "chain name `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' too long (must be under 29 chars)",
        2,
    );
    let (message, exit) = stderr("iptables -A INPUT --dport 80", Kernel::V2_6_35);
    assert_eq!((message.as_str(), exit), ("iptables v1.4.4: Unknown arg `--dport'", 2));
}

#[test]
fn listings_have_their_columns() {
    let counted = |line: &str, packets, bytes| Counted { rule: rule(line), packets, bytes };
    let chain = Chain {
        name: "INSHAPER".into(),
        policy: None,
        packets: 0,
        bytes: 0,
        references: 1,
        rules: vec![
            counted("iptables -A X -p tcp --dport 5001 -j MARK --set-mark 10", 8, 123_456),
            counted("iptables -A X -m mark --mark 0 -j MARK --set-mark 30", 0, 0),
            counted("iptables -A X -s 10.3.34.0/24 -i eth1", 0, 0),
        ],
    };
    let l = Listing { numeric: true, verbose: true, ..Listing::default() };
    assert_eq!(
        list(&[&chain], &l, Family::Ip, Kernel::V2_6_35),
        "Chain INSHAPER (1 references)\n pkts bytes target     prot opt in     out     source               destination         \n    8  123K MARK       tcp  --  *      \
         *       0.0.0.0/0            0.0.0.0/0           tcp dpt:5001 MARK xset 0xa/0xffffffff \n    0     0 MARK       all  --  *      *       0.0.0.0/0            \
         0.0.0.0/0           mark match 0x0 MARK xset 0x1e/0xffffffff \n    0     0            all  --  eth1   *       10.3.34.0/24         0.0.0.0/0           \n"
    );
    let l = Listing { numeric: true, line_numbers: true, ..Listing::default() };
    assert_eq!(
        list(&[&chain], &l, Family::Ip, Kernel::V6_12),
        "Chain INSHAPER (1 references)\nnum  target     prot opt source               destination         \n1    MARK       6    --  0.0.0.0/0            \
         0.0.0.0/0            tcp dpt:5001 MARK set 0xa\n2    MARK       0    --  0.0.0.0/0            0.0.0.0/0            mark match 0x0 MARK set 0x1e\n\
         3               0    --  10.3.34.0/24         0.0.0.0/0           \n"
    );
}

#[test]
fn the_old_program_keeps_its_words() {
    let old = |line: &str, want: &str| {
        assert_eq!(stderr(line, Kernel::V2_6_35), (format!("iptables v1.4.4: {want}"), 2), "{line}");
    };
    old("iptables -A INPUT foo", "Bad argument `foo'");
    old("iptables -N -x", "chain name not allowed to start with `-' or `!'");
    old("iptables -N MARK", "chain name may not clash with target name");
    old("iptables -L -p tcp", "Illegal option `-j' with this command");
    old("iptables -A INPUT -p foo", "unknown protocol `foo' specified");
    old("iptables -t mangle -A OUTPUT -j DSCP --set-dscp 64", "DSCP `64` out of range");
    for line in
        ["iptables -F -n", "iptables -A INPUT -n -j ACCEPT", "iptables -N ACCEPT", "iptables -L -n -n"]
    {
        assert!(parse(&words(line), Kernel::V2_6_35).is_ok(), "{line}");
    }
}
