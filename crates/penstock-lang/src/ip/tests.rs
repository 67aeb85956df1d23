use super::*;

fn read(line: &str) -> Result<Command, Failure> {
    let words: Vec<Word> = line.split_whitespace().map(|w| Word::new(w, 0)).collect();
    parse(&words, Kernel::V6_12)
}

#[test]
fn abbreviations_and_forms() {
    let Ok(Command::AddrAdd { spec, replace: false }) = read("ip a a 10.0.0.1/24 dev eth0") else { panic!() };
    assert_eq!((spec.dev.as_str(), spec.local.map(|n| n.len)), ("eth0", Some(24)));
    let Ok(Command::Show(filter, form)) = read("ip -br -s -s a s up") else { panic!() };
    assert!(filter.addresses && filter.up && form.brief && form.stats == 2);
    let Ok(Command::Link(r)) = read("ip l set dev eth0 up mtu 1400 txqueuelen 50") else { panic!() };
    assert_eq!((r.change, r.flags, r.mtu, r.txqueuelen), (1, 1, Some(1400), Some(50)));
    let Ok(Command::Route(RouteVerb::Add, r)) = read("ip r add 10.3.33.0/24 via 10.3.32.55 metric 5") else {
        panic!()
    };
    assert_eq!((r.dst.map(|d| d.len), r.metric), (Some(24), Some(5)));
    assert!(
        matches!(read("ip route add default via 10.0.0.1"), Ok(Command::Route(_, r)) if r.dst.map(|d| d.len) == Some(0))
    );
    assert!(matches!(read("ip ro get 10.0.0.1"), Ok(Command::RouteGet(..))));
    let Ok(Command::Link(r)) = read("ip link add v0 type veth peer name v1 netns a") else { panic!() };
    let LinkData::Peer(peer) = &r.data else { panic!() };
    assert_eq!((peer.name.as_deref(), peer.netns.as_deref()), (Some("v1"), Some("a")));
}

#[test]
fn the_namespace_is_found_before_the_rest() {
    let found = |line: &str| {
        let words: Vec<Word> = line.split_whitespace().map(|w| Word::new(w, 0)).collect();
        netns_option(&words).map(str::to_owned)
    };
    assert_eq!(found("ip -n a link"), Some("a".to_owned()));
    assert_eq!(found("ip -4 -netns b -o addr"), Some("b".to_owned()));
    assert_eq!(found("ip link -n a"), None);
    assert_eq!(found("ip -n"), Some("(null)".to_owned()));
}

#[test]
fn refusals_in_ip_s_words() {
    let check = |line: &str, want: &str, exit: i32| {
        let f = read(line).expect_err(line);
        assert_eq!((f.stderr.lines().next().unwrap_or(""), f.exit), (want, exit), "{line}");
    };
    check("ip foo", "Object \"foo\" is unknown, try \"ip help\".", 1);
    check("ip addr foo", "Command \"foo\" is unknown, try \"ip address help\".", 255);
    check("ip addr add 10.0.0.1/24", "Not enough information: \"dev\" argument is required.", 1);
    check("ip addr add x dev eth0", "Error: any valid prefix is expected rather than \"x\".", 1);
    check(
        "ip addr add 10.0.0.1/33 dev eth0",
        "Error: any valid prefix is expected rather than \"10.0.0.1/33\".",
        1,
    );
    check("ip addr add 10.0.0.1 dev", "Command line is not complete. Try option \"help\"", 255);
    check("ip -x a", "Option \"-x\" is unknown, try \"ip -help\".", 255);
    check("ip route add 10.0.0.0/8 foo", "Error: either \"to\" is duplicate, or \"foo\" is a garbage.", 255);
    check("ip link set eth0 mtu x", "Error: argument \"x\" is wrong: Invalid \"mtu\" value", 255);
    check("ip link set eth0 eth1", "Error: either \"dev\" is duplicate, or \"eth1\" is a garbage.", 255);
}
