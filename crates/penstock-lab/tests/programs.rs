//! Programs that take time within scripts: `ping` and `iperf` in pipes, in loops, in the background, killed, cut off.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};

/// What an app that runs this script prints, and its exit status; the link's delay is 5 ms there and back 10 ms,
/// and the first ping waits for ARP as well.
#[track_caller]
fn script(text: &str) -> (String, Option<i32>) {
    let text = format!(
        "duration = \"20s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
         [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\n\
         [[app]]\non = \"b\"\nrun = \"iperf -s\"\n[[app]]\non = \"b\"\nrun = \"iperf -s -u\"\n[[app]]\non = \"a\"\nrun = '''\n{text}\n'''\nat = \"1s\"\n"
    );
    let parsed = experiment::parse(&text, "script.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|d| panic!("{}", d[0]));
    (outcome.outputs[2].clone(), outcome.record.apps[2].exit)
}

/// The script's own time at the end of some commands, in tenths of a second.
fn taken(commands: &str) -> String {
    let (said, _) = script(&format!("echo $EPOCHREALTIME; {commands}; echo $EPOCHREALTIME"));
    let lines: Vec<&str> = said.lines().collect();
    let time = |line: &str| line.parse::<f64>().unwrap_or_else(|_| panic!("{commands}: {said}"));
    format!("{:.1}", time(lines[lines.len() - 1]) - time(lines[0]))
}

#[test]
fn what_they_print_goes_where_a_script_sends_it() {
    let (said, exit) = script("ping -c 2 10.0.0.2 | tail -2 | head -1");
    assert!(said.starts_with("2 packets transmitted, 2 received, 0% packet loss"), "{said}");
    assert_eq!((said.lines().count(), exit), (1, Some(0)));
    let (said, _) =
        script("x=$(ping -c 1 10.0.0.2); case $x in *'time=20'*) echo twenty;; *) echo \"$x\";; esac");
    assert_eq!(said, "twenty\n");
    let (said, _) = script(
        "ping -c 1 10.0.0.2 > log; grep -c 'bytes from' log; sudo /usr/bin/ping -qc1 10.0.0.2 >/dev/null",
    );
    assert_eq!(said, "1\n");
    let (said, exit) = script(
        "if ping -c 1 -W 1 10.0.0.9 > /dev/null; then echo there; else echo gone; fi; ping -c; exit 7",
    );
    assert!(said.starts_with("gone\n") && said.contains("option requires an argument"), "{said}");
    assert_eq!(exit, Some(7));
}

/// The programs that look at the way: in pipes, in a namespace of their own, cut off, and what they do not do.
#[test]
fn programs_that_look_at_the_way() {
    let (said, exit) = script("traceroute -n 10.0.0.2; sleep 10; /usr/bin/traceroute b | tail -1; echo $?");
    // At once the second would wait for b, which says no more than six times in a moment that nobody listens.
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "traceroute to 10.0.0.2 (10.0.0.2), 30 hops max, 60 byte packets", "{said}");
    assert!(lines[1].starts_with(" 1  10.0.0.2  20.") && lines[1].ends_with(" ms"), "{said}");
    assert!(lines[2].starts_with(" 1  b (10.0.0.2)  10.") && lines[3..] == ["0"], "{said}");
    assert_eq!(exit, Some(0));
    let (said, _) =
        script("tracepath -n 10.0.0.2 | tail -1; x=$(mtr -rn -c 2 10.0.0.2); echo \"$x\" | tail -1");
    assert_eq!(
        said,
        "     Resume: pmtu 1500 hops 1 back 1 \n  1.|-- 10.0.0.2                   0.0%     2   10.2  10.2  10.2  10.2   0.0\n"
    );
    assert_eq!(taken("timeout 1.5 traceroute -n 10.0.0.9 > /dev/null"), "1.5");
    let (said, _) = script("mtr 10.0.0.2; echo $?; traceroute -A 10.0.0.2; echo $?");
    assert_eq!(
        said,
        "mtr: the interactive screen is not simulated: write -r for a report\n1\n\
         traceroute: -A is not simulated: nobody can be asked for the numbers of networks\n2\n"
    );
}

#[test]
fn they_take_their_time_and_no_more() {
    assert_eq!(taken("ping -c 3 10.0.0.2 > /dev/null"), "2.0");
    assert_eq!(taken("for i in 1 2 3; do ping -c 1 10.0.0.2 > /dev/null; sleep 0.5; done"), "1.5");
    // Beside each other they take as long as the longer one.
    assert_eq!(taken("ping -c 3 10.0.0.2 > /dev/null & ping -c 5 10.0.0.2 > /dev/null & wait"), "4.0");
    assert_eq!(taken("timeout 1.5 ping 10.0.0.2 > /dev/null"), "1.5");
    assert_eq!(taken("ping 10.0.0.2 > /dev/null & p=$!; sleep 2.5; kill $p"), "2.5");
    assert_eq!(taken("iperf -c 10.0.0.2 -t 3 > /dev/null"), "3.0");
}

/// A command amid a program's traffic happens when the script gives it, not when the program ends.
#[test]
fn commands_come_amid_their_traffic() {
    let (said, _) = script(
        "ping -i 0.5 -c 6 10.0.0.2 > log &\nsleep 1.2\ntc qdisc add dev eth0 root netem delay 100ms\n\
         sleep 1\ntc qdisc del dev eth0 root\nwait\ngrep -o 'time=[0-9]*' log",
    );
    let times: Vec<&str> = said.lines().collect();
    assert_eq!(times, ["time=20", "time=10", "time=10", "time=110", "time=110", "time=10"], "{said}");
}

/// A program that its script has ended sends nothing more; one that is under way at the end has told what it had.
#[test]
fn they_end_with_their_script_s_wish_and_with_the_run() {
    let sent = |script_text: &str| {
        let (said, _) = script(script_text);
        said.trim().parse::<u64>().unwrap_or_else(|_| panic!("{script_text}: {said}"))
    };
    const SENT: &str = "tc -s qdisc show dev eth0 | sed -n 's/.* \\([0-9]*\\) pkt.*/\\1/p' | head -1";
    let after = |wait: &str| {
        sent(&format!(
            "tc qdisc add dev eth0 root pfifo\nping -i 0.1 10.0.0.2 >/dev/null &\nsleep 2\nkill $!\nsleep {wait}\n{SENT}"
        ))
    };
    // An answer to an ARP request may come.
    assert!(after("9") <= after("0.5") + 1);
    assert!(after("0.5") > 15);
    // iperf 2 does not end by one signal; `timeout` waits for it. So recorded on Linux.
    assert_eq!(taken("timeout 2 iperf -c 10.0.0.2 -t 4 > /dev/null"), "4.1");
    let (said, _) = script(
        "timeout 2.5 ping 10.0.0.2 > log; echo $?; grep -c 'bytes from' log; timeout 5 bash -c 'ping 10.0.0.2'; echo $?",
    );
    assert!(said.starts_with("124\n3\nPING") && said.ends_with("\n124\n"), "{said}");
    let (said, exit) = script("echo begun; ping -i 5 10.0.0.2");
    assert!(said.starts_with("begun\nPING 10.0.0.2") && said.matches("bytes from").count() == 4, "{said}");
    assert_eq!(exit, None);
}

/// What is refused is told with its place in the experiment, whether the text stands there letter by letter or is made by a template.
#[test]
fn ssh_is_refused_at_its_place() {
    let refused = |app: &str| {
        let text = format!(
            "duration = \"1s\"\n[host.\"u{{1..2}}\"]\neth0 = \"10.0.0.{{n}}/24\"\n[[link]]\nends = [\"u1:eth0\", \"u2:eth0\"]\n\
             [[app]]\n{app}\n"
        );
        let parsed = experiment::parse(&text, "ssh.toml").unwrap_or_else(|d| panic!("{}", d[0]));
        match run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} }) {
            Ok(_) => panic!("{app}: it ran"),
            Err(faults) => {
                faults.iter().map(|d| format!("{}:{}: {}", d.file, d.line, d.message)).collect::<Vec<_>>()
            }
        }
    };
    let said = "ssh within a script cannot be run by the simulator";
    assert_eq!(
        refused("on = \"u1\"\nrun = \"\"\"\ntrue\nssh u2 true\n\"\"\""),
        [format!("ssh.toml:10: {said}")]
    );
    let each = refused("each = \"1..2\"\non = \"u{n}\"\nrun = \"sleep {n}; ssh u1 true\"");
    assert_eq!(each, [format!("ssh.toml:9: {said}"), format!("ssh.toml:9: {said}")]);
}

/// An iperf3 3.18 client and its server as apps; each one's output.
fn iperf3(options: &str) -> (String, String) {
    let text = format!(
        "duration = \"8s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
         [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\n\
         [[app]]\non = \"b\"\nrun = \"iperf3 -s\"\n[[app]]\non = \"a\"\nrun = \"iperf3 -c 10.0.0.2 {options}\"\nat = \"1s\"\n"
    );
    let parsed = experiment::parse(&text, "iperf3.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|d| panic!("{}", d[0]));
    assert_eq!(outcome.record.apps[1].exit, Some(0), "{options}: {}", outcome.outputs[1]);
    (outcome.outputs[1].clone(), outcome.outputs[0].clone())
}

/// The Mbit/s of the line that begins and ends so.
fn mbits(text: &str, begins: &str, ends: &str) -> f64 {
    let line = text.lines().find(|l| l.starts_with(begins) && l.trim_end().ends_with(ends));
    let line = line.unwrap_or_else(|| panic!("no line {begins} … {ends}: {text}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|w| w.ends_with("bits/sec")).unwrap();
    assert_eq!(words[unit], "Mbits/sec", "{line}");
    words[unit - 1].parse().unwrap()
}

#[test]
fn both_directions_of_an_iperf3_share_nothing_but_the_control_connection() {
    for (options, each) in [("-t 4 --bidir", 8.5..9.7), ("-t 4 --bidir -u -b 3M", 2.9..3.1)] {
        let (client, server) = iperf3(options);
        for (id, role) in [("[  5]", "TX-C"), ("[  7]", "RX-C")] {
            let rate = mbits(&client, &format!("{id}[{role}]   0.00-"), "receiver");
            assert!(each.contains(&rate), "{options} {role}: {client}");
            assert!(mbits(&client, &format!("{id}[{role}]   0.00-"), "sender") >= rate * 0.98, "{client}");
        }
        assert!(client.contains("\n[ ID][Role] Interval           Transfer     Bitrate  "), "{client}");
        assert!(server.contains("[  5][RX-S]") && server.contains("[TX-S]   0.00-"), "{server}");
        assert!(server.ends_with("Server listening on 5201 (test #2)\n-----------------------------------------------------------\n"), "{server}");
        // The server tells of each direction what it knows itself.
        assert_eq!(
            server.matches(" receiver\n").count() + server.matches(" sender\n").count(),
            2,
            "{server}"
        );
    }
}

#[test]
fn an_iperf3_gives_the_client_what_its_server_printed() {
    let (client, server) = iperf3("-t 2 --get-server-output");
    let said = client.split("\nServer output:\n").nth(1).unwrap().split("\n\niperf Done.").next().unwrap();
    assert!(
        said.starts_with("-----") && said.contains("(test #1)") && said.ends_with("receiver\n"),
        "{client}"
    );
    assert!(server.starts_with(said), "{server}");
    assert_eq!(server.matches("receiver").count(), 1, "{server}");
    let (client, _) = iperf3("-t 2 -J --get-server-output");
    let json: serde_json::Value = serde_json::from_str(&client).unwrap();
    assert!(json["server_output_text"].as_str().unwrap().contains("Accepted connection from 10.0.0.1"));
    assert_eq!(
        (&json["start"]["version"], &json["start"]["test_start"]["bidir"]),
        (&"iperf 3.18".into(), &0.into())
    );
    assert_eq!(json["intervals"][0]["streams"][0]["pmtu"], 1500);
    let rate = json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!((8.5e6..9.7e6).contains(&rate), "{rate}");
    // What the receiver took is not longer than the sender and the way.
    let time = |name: &str| json["end"][name]["end"].as_f64().unwrap();
    assert!(time("sum_received") >= time("sum_sent") && time("sum_received") < time("sum_sent") + 1.0);
}

#[test]
fn the_stream_of_an_iperf3_is_a_line_for_each_event() {
    let (client, _) = iperf3("-t 3 --json-stream");
    let events: Vec<serde_json::Value> =
        client.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    let names: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "interval", "interval", "interval", "end"]);
    let (whole, _) = iperf3("-t 3 -J");
    let whole: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(events[0]["data"], whole["start"]);
    assert_eq!(events[2]["data"], whole["intervals"][1]);
    assert_eq!(events[4]["data"], whole["end"]);
    let (u, _) = iperf3("-u -b 2M -t 2 -P 4 -R -J");
    let u: serde_json::Value = serde_json::from_str(&u).unwrap();
    let ids: Vec<i64> =
        u["start"]["connected"].as_array().unwrap().iter().map(|c| c["socket"].as_i64().unwrap()).collect();
    assert_eq!(ids, [5, 7, 9, 12]);
    assert_eq!(u["end"]["sum_received"]["sender"], false);
}

#[test]
fn an_iperf3_in_a_script_writes_its_log() {
    let text = "duration = \"8s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
         [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\n\
         [[app]]\non = \"b\"\nrun = \"iperf3 -s\"\n[[app]]\non = \"a\"\nat = \"1s\"\nrun = '''\n\
         iperf3 -c 10.0.0.2 -t 1 --logfile i3.log\necho $?\ngrep -c receiver i3.log\n\
         iperf3 -c 10.0.0.2 -t 1 --logfile=i3.log\ngrep -c receiver i3.log\n'''\n";
    let parsed = experiment::parse(text, "log.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|d| panic!("{}", d[0]));
    assert_eq!(outcome.outputs[1], "0\n1\n2\n");
}

#[test]
fn ss_is_asked_again_and_again() {
    let (said, _) = script(
        "iperf3 -s > /dev/null & sleep 0.1; ss -Htlnp; iperf3 -c 10.0.0.1 -t 1 > /dev/null & \
         for i in 1 2 3; do sleep 0.25; ss -Htin state established dport = :5201 | grep -c 'cwnd:.* bytes_acked:'; done; \
         sleep 2; ss -Htan state time-wait | wc -l; ss -K dst 10.0.0.1; echo $?",
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>()[..4],
        ["LISTEN", "0", "4096", "*:5201"],
        "{said}"
    );
    assert!(lines[0].contains("users:((\"iperf3\",pid="), "{said}");
    // The data's connection, and that which speaks of it.
    assert_eq!(lines[1..4], ["2"; 3], "{said}");
    assert!(lines[4].parse::<u32>().unwrap() > 0, "{said}");
    assert!(said.contains("ss -K: not simulated"), "{said}");
}
