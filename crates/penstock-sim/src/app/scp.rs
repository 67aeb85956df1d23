//! `scp`: one file to another machine.
//!
//! Follows: OpenSSH 5.5 `packet_set_interactive` (a session without a terminal sets IPTOS_THROUGHPUT once it is
//! set up), `progressmeter.c` `refresh_progress_meter`, `format_size`, `format_rate`; RFC 4253 for what is exchanged before.
//! Differs: today's OpenSSH (7.8 on) would set DSCP cs1 instead; one file, in this direction.
//! A file has contents nowhere: its length is looked up by name (`World::add_file`), or the name is `scp:BYTES`.

use crate::app::daemon::{ANSWER, ASK, SET_TOS};
use crate::app::iperf::throughput;
use crate::app::options::{self, Known, c_number, o};
use crate::app::{Cx, Failure, Family, Program};
use crate::index::NONE;
use crate::intent::Intent;
use crate::net::Net;
use crate::sock::{Message, SockOpts};
use crate::wake::Wake;
use penstock_model::Time;

pub(crate) const KNOWN: &[Known] = &[
    o('P', "", true),
    o('p', "", false),
    o('q', "", false),
    o('r', "", false),
    o('C', "", false),
    o('B', "", false),
    o('v', "", false),
    o('4', "", false),
    o('i', "", true),
    o('o', "", true),
    o('l', "", true),
    o('c', "", true),
];

const USAGE: &str = "usage: scp [-1246BCpqrv] [-c cipher] [-F ssh_config] [-i identity_file]\n           [-l limit] [-o ssh_option] [-P port] [-S program]\n           \
    [[user@]host1:]file1 ... [[user@]host2:]file2\n";

/// IPTOS_THROUGHPUT.
const TOS: u8 = 0x08;
/// What ssh adds to 32 KB of data: packet length, padding, channel header, MAC.
const OVERHEAD_32K: u64 = 52;

/// Rounds before the file: bytes sent, bytes asked for. Versions, key exchange, authentication, the channel, `scp -t`.
const ROUNDS: &[(u64, u64)] = &[
    (39, 39),
    (792, 784),
    (24, 152),
    (144, 720),
    (16, 48),
    (48, 48),
    (64, 64),
    (144, 32),
    (64, 48),
    (112, 64),
    (64, 48),
];

/// One `scp`.
pub(crate) struct Scp {
    // Parameters
    file: String,
    bytes: u64,
    user: String,
    target: String,
    port: u16,
    quiet: bool,
    // Variables
    sock: u32,
    round: usize,
    started: Time,
    sending: bool,
}

impl Scp {
    pub(crate) fn parse(args: &[&str], net: &Net) -> Result<Scp, Failure> {
        let (options, words) = options::parse("scp", args, KNOWN, USAGE, 1)?;
        let mut port = 22;
        let mut quiet = false;
        for (letter, value) in options {
            match letter {
                'P' => {
                    let wrong = || Failure::new(format!("Bad port '{value}'\n"), 255);
                    port = c_number(value)
                        .and_then(|p| u16::try_from(p).ok())
                        .filter(|&p| p > 0)
                        .ok_or_else(wrong)?;
                }
                'q' => quiet = true,
                _ => {}
            }
        }
        let [file, to] = words[..] else { return Err(Failure::new(USAGE, 1)) };
        let Some((target, _)) = to.split_once(':') else {
            return Err(Failure::new(
                format!("scp: {to}: only copies to another machine are modelled: HOST:PATH\n"),
                1,
            ));
        };
        let missing = || Failure::new(format!("{file}: No such file or directory\n"), 1);
        let bytes = match file.strip_prefix("scp:") {
            Some(bytes) => bytes.parse().ok(),
            None => net.names.files.get(file).copied(),
        };
        let bytes = bytes.ok_or_else(missing)?;
        let (user, host) = target.split_once('@').unwrap_or(("", target));
        let name = file.rsplit('/').next().unwrap_or(file);
        Ok(Scp {
            file: name.to_owned(),
            bytes,
            user: user.to_owned(),
            target: host.to_owned(),
            port,
            quiet,
            sock: NONE,
            round: 0,
            started: Time::ZERO,
            sending: false,
        })
    }
    /// The next round of the set-up, or the file.
    fn next(&mut self, cx: &mut Cx<'_>) {
        if let Some(&(send, ask)) = ROUNDS.get(self.round) {
            if self.round == 6 {
                let login = if self.user.is_empty() { "root" } else { &self.user };
                let prompt = format!("{login}@{}'s password: \n", self.target);
                cx.print(&prompt);
            }
            self.round += 1;
            if self.round == ROUNDS.len() - 1 {
                // The session stands: from now on both sides mark their packets.
                cx.net.set_tos(self.sock, TOS);
                cx.net.tcp_say(
                    self.sock,
                    16,
                    Message { kind: SET_TOS, values: vec![i64::from(TOS)], text: String::new() },
                );
            }
            cx.net.tcp_say(
                self.sock,
                send,
                Message { kind: ASK, values: vec![ask as i64], text: String::new() },
            );
            return;
        }
        if self.sending {
            self.finish(cx);
            return;
        }
        self.sending = true;
        self.started = cx.now();
        let wire = self.bytes + self.bytes.div_ceil(32_768) * OVERHEAD_32K;
        cx.net.tcp_say(self.sock, wire.max(1), Message { kind: ASK, values: vec![48], text: String::new() });
    }
    /// The other side has the file.
    fn finish(&mut self, cx: &mut Cx<'_>) {
        let took = cx.now() - self.started;
        if !self.quiet {
            // `time(NULL)` at both ends: whole seconds of the clock, not of the time between.
            let second = |t: Time| t.as_ns() / 1_000_000_000;
            let seconds = second(cx.now()) - second(self.started);
            cx.print(&progress(&self.file, self.bytes, seconds as u64));
            cx.print("\n");
        }
        cx.result.bytes = Some(self.bytes);
        cx.result.duration = Some(took);
        cx.result.throughput_bit_s = throughput(self.bytes, took);
        cx.net.tcp_close(self.sock);
        cx.exit(0);
    }
}

/// scp's line at the end of a file, on a terminal of 80 columns.
fn progress(file: &str, bytes: u64, seconds: u64) -> String {
    let name: String = file.chars().take(45).collect();
    let rate = bytes.checked_div(seconds).unwrap_or(bytes);
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let time = if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("  {m:02}:{s:02}") };
    format!("{name:<45} 100% {} {}/s {time}    ", format_size(bytes), format_rate(rate))
}

fn format_size(mut bytes: u64) -> String {
    let mut i = 0;
    while bytes >= 10_000 && i < 4 {
        bytes = (bytes + 512) / 1024;
        i += 1;
    }
    format!("{bytes:4}{}{}", b" KMGT"[i] as char, if i > 0 { "B" } else { " " })
}

fn format_rate(bytes: u64) -> String {
    let mut hundredths = bytes.saturating_mul(100);
    let mut i = 0;
    while hundredths >= 100_000 && i < 4 {
        hundredths = (hundredths + 512) / 1024;
        i += 1;
    }
    if i == 0 {
        i = 1;
        hundredths = (hundredths + 512) / 1024;
    }
    format!("{:3}.{}{}B", (hundredths + 5) / 100, (hundredths + 5) / 10 % 10, b" KMGT"[i] as char)
}

impl Program for Scp {
    fn intent(&self) -> Intent {
        Intent::call(&self.target, None, None)
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        let target = self.target.clone();
        let Some(addr) = cx.resolve(&target, Family::Any) else {
            cx.print(&format!(
                "ssh: Could not resolve hostname {target}: Name or service not known\nlost connection\n"
            ));
            cx.exit(1);
            return;
        };
        let to = cx.net.host_of(addr).unwrap_or(cx.host);
        cx.net.wakes.daemons.push((to, self.port));
        let flow = cx.flow_name();
        let flow = cx.new_flow(flow, cx.host, to, "tcp");
        let cfg = cx.net.tcp_config(cx.host);
        let remote = (addr, self.port);
        match cx.net.tcp_connect(cx.host, cx.app, remote, flow, true, SockOpts::default(), cfg) {
            Ok(sock) => self.sock = sock,
            Err(error) => self.lost(error, cx),
        }
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Connected(_) => self.next(cx),
            Wake::Readable(sock) => {
                cx.net.tcp_read(sock);
                while let Some(message) = cx.net.tcp_hear(sock) {
                    if message.kind == ANSWER {
                        self.next(cx);
                    }
                }
            }
            Wake::Failed(_, error) => self.lost(error, cx),
            _ => {}
        }
    }
}

impl Scp {
    fn lost(&self, error: &str, cx: &mut Cx<'_>) {
        let text =
            format!("ssh: connect to host {} port {}: {error}\nlost connection\n", self.target, self.port);
        cx.print(&text);
        cx.exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_is_scp_s() {
        // Founding document 004, section 7.4: "Video08-3.wmv 100% 51MB 5.1MB/s 00:10".
        let line = progress("Video08-3.wmv", 53_477_376, 10);
        let want = format!("{:<45} 100%   51MB   5.1MB/s   00:10    ", "Video08-3.wmv");
        assert_eq!(line, want);
        assert_eq!(format_size(9_999), "9999  ");
        assert_eq!(format_rate(512), "  0.5KB");
    }

    #[test]
    fn files_have_a_length() {
        let mut net = Net::new(1);
        net.names.files.insert("v.wmv".into(), 7);
        assert_eq!(
            Scp::parse(&["v.wmv", "u@h:./"], &net).map(|s| (s.bytes, s.user)).unwrap(),
            (7, "u".to_owned())
        );
        assert_eq!(Scp::parse(&["scp:1000", "h:"], &net).map(|s| s.bytes).unwrap(), 1000);
        assert_eq!(Scp::parse(&["x", "h:"], &net).err().unwrap().text, "x: No such file or directory\n");
        assert_eq!(Scp::parse(&["x"], &net).err().unwrap().status, 1);
    }
}
