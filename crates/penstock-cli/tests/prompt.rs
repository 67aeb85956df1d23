//! `penstock shell` at a terminal, typed into key by key: a pseudo-terminal from util-linux's `script`.

use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A prompt in a terminal of its own.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    seen: String,
}

/// What the line editor sends when it takes keys, and when a line is done.
const READY: &str = "\x1b[?2004h";
const DONE: &str = "\x1b[?2004l";

impl Terminal {
    /// `None` where there is no `script`.
    fn open(state: &Path) -> Option<Terminal> {
        let line = format!("{} shell", env!("CARGO_BIN_EXE_penstock"));
        let child = Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .env("PENSTOCK_STATE", state)
            .env_remove("PENSTOCK_KERNEL")
            .env_remove("PENSTOCK_ADVICE")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            let _ =
                writeln!(std::io::stdout(), "SKIPPED: there is no `script` (util-linux) to give a terminal");
            return None;
        };
        let (keys, mut from) = (child.stdin.take()?, child.stdout.take()?);
        let (to, output) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut part) {
                if to.send(part[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut terminal = Terminal { child, keys, output, seen: String::new() };
        terminal.wait_for(READY);
        Some(terminal)
    }

    /// Types keys.
    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until this is shown; gives what was shown until then.
    #[track_caller]
    fn wait_for(&mut self, text: &str) -> String {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let left = end.saturating_duration_since(Instant::now());
            let part = self.output.recv_timeout(left);
            let part = part.unwrap_or_else(|e| panic!("{e}: {text:?} was not shown: {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&part));
        }
    }

    /// Types a line, and gives what its commands said.
    #[track_caller]
    fn line(&mut self, line: &str) -> String {
        self.keys(&format!("{line}\r"));
        self.wait_for(DONE);
        let said = self.wait_for(READY);
        said.replace(READY, "").replace("\r\n", "\n").trim_start_matches('\n').to_owned()
    }

    fn status(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

#[test]
fn tab_completes_and_says_what_words_mean() {
    let folder = scratch("tab");
    let Some(mut terminal) = Terminal::open(&folder) else { return };
    terminal.keys("tc qd\t");
    terminal.wait_for("penstock# tc qdisc ");
    terminal.keys("add dev eth0 root tb\t");
    terminal.wait_for("root tbf ");
    terminal.keys("bu\t");
    terminal.wait_for("tbf burst ");
    terminal.keys("5k la\t");
    terminal.wait_for("latency ");
    terminal.keys("50ms rate");
    // What the word means stands behind it.
    terminal.wait_for("RATE: long-term rate");
    assert_eq!(terminal.line(" 1mbit"), "");
    let shown = terminal.line("tc qdisc show dev eth0");
    assert!(shown.starts_with("qdisc tbf 8001: root refcnt 2 rate 1Mbit burst 5Kb lat 50ms"), "{shown}");
    terminal.keys("tc qdisc del dev \t\t");
    terminal.wait_for("eth0");
    terminal.wait_for("eth1");
    terminal.keys("\x03");
    terminal.wait_for(READY);
    terminal.keys("\x04");
    assert_eq!(terminal.status(), Some(0));
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn lines_history_errors_and_the_end() {
    let folder = scratch("lines");
    let Some(mut terminal) = Terminal::open(&folder) else { return };
    assert_eq!(terminal.line("D=eth0; f() { tc qdisc $1 dev $D root handle 7: sfq; }"), "");
    assert_eq!(terminal.line("f add; echo $?"), "0\n");
    // A line that wants more gets it.
    assert_eq!(terminal.line("for i in 1 2\rdo echo $i; done | tac"), "2\n1\n");
    assert_eq!(
        terminal.line("cat <<E | tc -b -\rqdisc del dev $D root\rqdisc add dev $D root handle 7: sfq\rE"),
        ""
    );
    let refused = terminal.line("f add");
    assert!(refused.starts_with("Error: Exclusivity flag on, cannot modify.\n"), "{refused}");
    // The line before, by the arrow.
    assert_eq!(terminal.line("\x1b[A"), refused);
    assert_eq!(terminal.line("nosuch; echo $?").lines().last(), Some("127"));
    assert!(terminal.line("systemctl restart networking").contains("not started"), "nothing outside");
    terminal.keys("(exit 5) || exit 3\r");
    assert_eq!(terminal.status(), Some(3));
    // The machine and the history stay; Ctrl-D leaves with the last status.
    let Some(mut terminal) = Terminal::open(&folder) else { return };
    terminal.keys("\x1b[A");
    terminal.wait_for("(exit 5) || exit 3");
    terminal.keys("\x03");
    terminal.wait_for(READY);
    assert!(terminal.line("tc qdisc show dev eth0").starts_with("qdisc sfq 7: root"));
    terminal.line("false");
    terminal.keys("\x04");
    assert_eq!(terminal.status(), Some(1));
    let _ = std::fs::remove_dir_all(folder);
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("penstock-prompt-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}
