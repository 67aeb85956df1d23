//! What a script meets that asks for programs and files which are not here, where that is unknown and not missing.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Console, Given, Script, run};

#[derive(Default)]
struct Kept {
    stdout: String,
    given: Vec<(u32, Vec<u32>)>,
    callers: Vec<Vec<String>>,
    unknown: Vec<(String, u32)>,
}

impl Console for Kept {
    fn print(&mut self, stdout: &str, _: &str) {
        self.stdout.push_str(stdout);
    }
    fn given(&mut self, given: Given) {
        self.given.push((given.line, given.calls));
        self.callers.push(given.callers);
    }
    fn unknown(&mut self, program: &str, _: &str, line: u32) {
        self.unknown.push((program.to_owned(), line));
    }
}

fn ran(text: &str, unknown: Option<&str>) -> (Kept, i32) {
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    let mut machine = At { host: &mut host, now: Time::ZERO };
    let mut kept = Kept::default();
    let script = Script {
        text: text.to_owned(),
        unknown: unknown.map(str::to_owned),
        env: vec![("GIVEN".to_owned(), "it's".to_owned())],
        name: "x.sh".to_owned(),
        files: vec![("/root/lib.sh".to_owned(), "h() {\n f qdisc show\n}\n".to_owned())],
        ..Script::default()
    };
    let status = run(&script, &mut machine, &mut kept).unwrap();
    (kept, status)
}

#[test]
fn programs_succeed_and_files_hold_what_nobody_knows() {
    let text = "set -e\nsystemctl stop x\necho \"$(jq -r .a f) $GIVEN\"\ncommand -v uci >/dev/null\n\
                . /etc/none.conf\ncat /etc/list\n[ -f /etc/list ] || echo missing\n";
    let (kept, status) = ran(text, Some("7301"));
    assert_eq!((kept.stdout.as_str(), status), ("7301\n7301 it's\n7301 7301 7301 7301\nmissing\n", 0));
    assert_eq!(kept.unknown, [("systemctl".to_owned(), 2), ("jq".to_owned(), 3)]);
    // Without, they are missing.
    let (kept, status) = ran(text, None);
    assert_eq!((kept.stdout.as_str(), status != 0, kept.unknown.len()), ("", true, 0));
}

#[test]
fn commands_know_where_they_are_called_from() {
    let text = "f() {\n tc \"$@\"\n}\ng() {\n f qdisc show\n}\nf qdisc show\ng\ntc qdisc show\n";
    assert_eq!(ran(text, Some("7301")).0.given, [(2, vec![7]), (2, vec![5, 8]), (9, vec![])]);
    assert_eq!(ran(text, None).0.given, [(2, vec![]), (2, vec![]), (9, vec![])]);
    // A call in a file that is sourced stands in that file.
    let text = "f() {\n tc \"$@\"\n}\n. ./lib.sh\nh\n";
    let kept = ran(text, Some("7301")).0;
    let callers = ["./lib.sh", "x.sh"].map(str::to_owned).to_vec();
    assert_eq!((kept.given, kept.callers), (vec![(2, vec![2, 5])], vec![callers]));
}
