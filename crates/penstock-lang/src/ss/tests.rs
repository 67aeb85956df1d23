use super::*;
use penstock_model::sockets::{ControlDiag, SocketMemory, SocketTimer, TcpDiag};

fn read(line: &str) -> Result<Request, Refusal> {
    let words: Vec<&str> = line.split('_').flat_map(|part| part.split(' ')).collect();
    // An argument with blanks is written with `_` at its ends.
    let mut joined: Vec<String> = Vec::new();
    if line.contains('_') {
        for (n, part) in line.split('_').enumerate() {
            match n % 2 {
                0 => joined.extend(part.split_whitespace().map(str::to_owned)),
                _ => joined.push(part.to_owned()),
            }
        }
    } else {
        joined = words.into_iter().filter(|w| !w.is_empty()).map(str::to_owned).collect();
    }
    let words: Vec<&str> = joined.iter().map(String::as_str).collect();
    parse(&words, &Machine { device: &|name| (name == "eth0").then_some(2) })
}

fn socket(state: SocketState, local: &str, remote: &str) -> Socket {
    let end = |text: &str| {
        let (addr, port) = text.rsplit_once(':').unwrap();
        (addr.trim_matches(['[', ']']).parse().unwrap(), port.parse().unwrap())
    };
    Socket {
        protocol: Protocol::Tcp,
        state,
        recv_q: 0,
        send_q: 0,
        local: end(local),
        remote: end(remote),
        dual: false,
        bound: 0,
        mark: 0,
        tos: 0,
        priority: 0,
        ino: 7,
        cookie: 7,
        user: Some(("sshd".to_owned(), 1_000, 3)),
        shutdown: Some(0),
        timer: None,
        memory: None,
        tcp: None,
    }
}

fn around() -> Around<'static> {
    Around { device: &|_| Some("eth0".to_owned()), ephemeral: (32_768, 60_999) }
}

fn shown(line: &str, sockets: &[Socket]) -> String {
    show(&read(line).unwrap(), sockets, &around())
}

#[test]
fn which_sockets_are_meant() {
    let all = [
        socket(SocketState::Listen, "0.0.0.0:22", "0.0.0.0:0"),
        socket(SocketState::Established, "10.0.0.1:22", "10.0.0.2:40000"),
        socket(SocketState::TimeWait, "10.0.0.1:40002", "10.0.0.3:5001"),
        socket(SocketState::CloseWait, "[fd00::1]:40004", "[fd00::2]:80"),
        socket(SocketState::SynRecv, "10.0.0.1:22", "10.9.0.2:40006"),
    ];
    let meant = |line: &str| {
        let r = read(line).unwrap();
        let found = all.iter().enumerate().filter(|(_, s)| r.means(s, (32_768, 60_999)));
        found.map(|(n, _)| n.to_string()).collect::<String>()
    };
    for (line, want) in [
        ("-t", "13"),
        ("-ta", "01234"),
        ("-tl", "0"),
        ("-4t", "1"),
        ("-6at", "3"),
        ("-u", ""),
        ("", "13"),
        ("-A inet", "13"),
        ("-A !tcp,udp", ""),
        ("-t exclude all", "13"),
        ("state established", "1"),
        ("-t state connected", "1234"),
        ("-t state bucket", "24"),
        ("-t exclude listening", "1234"),
        ("-t state time-wait state close-wait", "23"),
        ("-ta dst 10.0.0.2", "1"),
        ("-ta dst 10.0.0.0/24", "12"),
        ("-ta dst 10.0.0.2:40000", "1"),
        ("-ta dst [fd00::2]:http", "3"),
        ("-ta dst :5001", "2"),
        ("-ta sport = :22", "014"),
        ("-ta sport 22", "014"),
        ("-ta sport = :ssh and not dst 10.9.0.0/16", "01"),
        ("-ta _( dport = :80 or dport = :5001 )_", "23"),
        ("-ta dport = :80 or dport = :5001 and src 10.0.0.1", "2"),
        ("-ta dport gt 40000", "4"),
        ("-ta dport >= 40000", "14"),
        ("-ta dport < 100", "03"),
        ("-ta dport != :80", "0124"),
        ("-ta autobound", "23"),
        ("-ta dev eth0", ""),
        ("-ta dev != eth0", "01234"),
        ("-ta fwmark 0", "01234"),
        ("-ta fwmark 0x10/0xf0", ""),
        ("-ta dst inet6:fd00::/16", "3"),
        ("dst 10.0.0.2 -ta", "1"),
        ("-ta src *", "01234"),
    ] {
        assert_eq!(meant(line), want, "{line}");
    }
}

#[test]
fn what_is_wrong_is_said_as_ss_says_it() {
    let cannot = "Cannot parse dst/src address.\n";
    for (line, status, first) in [
        ("-q", 255, "ss: invalid option -- 'q'\nUsage: ss [ OPTIONS ]\n"),
        ("--foo", 255, "ss: unrecognized option '--foo'\nUsage: ss"),
        (
            "--n",
            255,
            "ss: option '--n' is ambiguous; possibilities: '--numeric' '--net' '--no-header'\nUsage",
        ),
        ("-A", 255, "ss: option requires an argument -- 'A'\nUsage"),
        ("--numeric=3", 255, "ss: option '--numeric' doesn't allow an argument\n"),
        ("-f foo", 255, "ss: \"foo\" is invalid family\nUsage"),
        ("-A tcp,foo", 255, "ss: \"foo\" is illegal socket table id\nUsage"),
        ("state foo", 255, "ss: wrong state name: foo\n"),
        ("state", 255, "Command line is not complete. Try option \"help\"\n"),
        ("dst nosuch", 1, "Error: an inet prefix is expected rather than \"nosuch\".\n"),
        ("dst fd00::2", 1, "Error: an inet prefix is expected rather than \"fd00:\".\n"),
        ("sport = :nosuch", 1, "Error: \"nosuch\" does not look like a port.\n"),
        ("dst [::1", 1, cannot),
        ("dev nosuch", 1, "Cannot parse device.\n"),
        ("fwmark x", 1, "Cannot parse mark x.\n"),
        ("dst", 255, "ss: bison bellows (while parsing filter): \"syntax error!\" Sorry.\nUsage"),
        ("(", 255, "ss: bison bellows (while parsing filter): \"syntax error!\" Sorry.\nUsage"),
        ("-Z", 1, "ss: SELinux is not enabled.\n"),
        ("-A !tcp", 0, "ss: no socket tables to show with such filter.\n"),
    ] {
        match read(line) {
            Err(Refusal::Said(_, error, n)) => {
                assert!(error.starts_with(first) && n == status, "{line}: {n} {error}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    let deep = format!("-t {}", "( ".repeat(10_000));
    assert!(matches!(read(&deep), Err(Refusal::Said(_, _, 255))));
    for line in ["-K", "-x", "-E", "-b", "-r", "--tipc", "-A unix", "-f link", "dst unix:/x", "--cgroup"] {
        assert!(matches!(read(line), Err(Refusal::NotSimulated(..))), "{line}");
    }
    assert!(matches!(read("-V"), Err(Refusal::Said(said, _, 0)) if said == "ss utility, iproute2-6.1.0\n"));
    assert!(matches!(read("-h"), Err(Refusal::Said(said, _, 0)) if said.lines().count() == 57));
}

/// As recorded of iproute2 6.1.0 (`vectors/tcp/ss.jsonl`), but for services, which are not asked for there.
#[test]
fn tables_are_as_wide_as_what_is_in_them() {
    let heading = "State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n";
    assert_eq!(shown("-t", &[]), heading);
    assert_eq!(shown("-Ht", &[]), "");
    let mut open = socket(SocketState::Established, "10.0.0.1:22", "10.0.0.2:40000");
    open.send_q = 117_288;
    let listens = socket(SocketState::Listen, "[::]:80", "[::]:0");
    let dual = Socket { dual: true, ..listens.clone() };
    let all = [open.clone(), listens, dual];
    let want = "State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
                LISTEN 0      0               [::]:http         [::]:*           \n\
                LISTEN 0      0                  *:http            *:*           \n\
                ESTAB  0      117288      10.0.0.1:ssh      10.0.0.2:40000       \n";
    assert_eq!(shown("-ta", &all), want);
    assert_eq!(shown("-Htn", &all[..1]), "ESTAB 0      117288 10.0.0.1:22 10.0.0.2:40000\n");
    let timers = shown("-Htnop state established", &all[..1]);
    assert_eq!(timers, "0      117288 10.0.0.1:22 10.0.0.2:40000 users:((\"sshd\",pid=1000,fd=3))\n");
    let mut waits = socket(SocketState::TimeWait, "10.0.0.1:22", "10.0.0.2:40000");
    (waits.ino, waits.shutdown, waits.timer) = (0, None, Some((SocketTimer::TimeWait, 59_240, 0)));
    let line = "TIME-WAIT 0      0      10.0.0.1:22 10.0.0.2:40000 timer:(timewait,59sec,0) ino:0 sk:7\n";
    assert_eq!(shown("-Htane", &[waits]), line);
    open.memory = Some(SocketMemory { rcvbuf: 131_072, sndbuf: 87_040, ..SocketMemory::default() });
    open.bound = 2;
    let line = "ESTAB 0      117288 10.0.0.1%eth0:22 10.0.0.2:40000 ino:7 sk:7 <-> \
                skmem:(r0,rb131072,t0,tb87040,f0,w0,o0,bl0,d0)\n";
    assert_eq!(shown("-HOtnme", &[open]), line);
}

#[test]
fn what_tcp_tells() {
    let mut open = socket(SocketState::Established, "10.0.0.1:22", "10.0.0.2:40000");
    let tcp = TcpDiag {
        cc: "bbr",
        timestamps: true,
        wscale: Some((7, 7)),
        rto_us: 210_000,
        rtt_us: 7_062,
        rttvar_us: 849,
        snd_mss: 1448,
        snd_cwnd: 10,
        snd_ssthresh: 0x7fff_ffff,
        control: Some(ControlDiag::Bbr(105_325, 90_000, 739, 739)),
        pacing_rate: 300_000,
        busy_us: 460_000,
        rwnd_limited_us: 360_000,
        app_limited: true,
        min_rtt_us: 5_000,
        total_retrans: 3,
        ..TcpDiag::default()
    };
    open.tcp = Some(Box::new(tcp));
    let want = "ESTAB 0      0      10.0.0.1:22 10.0.0.2:40000 bbr wscale:7,7 rto:210 rtt:7.062/0.849 mss:1448 cwnd:10 \
                bbr:(bw:842600bps,mrtt:90,pacing_gain:2.88672,cwnd_gain:2.88672) send 16403285bps \
                pacing_rate 2400000bps app_limited busy:460ms rwnd_limited:360ms(78.3%) retrans:0/3 minrtt:5\n";
    assert_eq!(shown("-HOtin", &[open.clone()]), want);
    let want = want.replace("842600bps", "843kbps").replace("16403285bps", "16.4Mbps");
    let want = want.replace("2400000bps", "2.4Mbps").replace(" bbr wscale", " ts bbr wscale");
    let want = want.replace(":22 ", ":ssh ");
    assert_eq!(shown("-HOtio", &[open]), want);
}

#[test]
fn sockets_are_counted() {
    let all = [
        socket(SocketState::Listen, "0.0.0.0:22", "0.0.0.0:0"),
        socket(SocketState::Established, "10.0.0.1:22", "10.0.0.2:40000"),
        Socket { ino: 0, shutdown: None, ..socket(SocketState::TimeWait, "10.0.0.1:40002", "10.0.0.3:5001") },
        Socket { protocol: Protocol::Udp, ..socket(SocketState::Close, "[::]:53", "[::]:0") },
    ];
    let want = "Total: 3\nTCP:   3 (estab 1, closed 1, orphaned 0, timewait 1)\n\n\
                Transport Total     IP        IPv6\n\
                RAW\t  0         0         0        \n\
                UDP\t  1         0         1        \n\
                TCP\t  2         2         0        \n\
                INET\t  3         2         1        \n\
                FRAG\t  0         0         0        \n\n";
    assert_eq!(summary(&all, [0, 0]), want);
}
