//! Interactive sessions: `ssh` and `telnet`. Somebody types commands; each key is echoed, each command answered.
//!
//! Follows: OpenSSH 5.5 `packet_set_interactive` (a terminal sets IPTOS_LOWDELAY once the session is set up), PuTTY
//! (sets nothing), netkit telnet (IPTOS_LOWDELAY from the start). Keys come at seeded gaps of 80 to 300 ms, commands after 1 to
//! 3 s of thought, answers have 100 to 2000 bytes.
//! Differs: today's OpenSSH (7.8 on) would set DSCP af21 instead.

use crate::app::console::{self, Typed};
use crate::app::daemon::{ANSWER, ASK, SET_TOS};
use crate::app::options::{self, Known, c_number, o};
use crate::app::{Cx, Failure, Family, Program};
use crate::histogram::Histogram;
use crate::index::NONE;
use crate::intent::Intent;
use crate::sock::{Message, SockOpts};
use crate::wake::Wake;
use penstock_model::traffic::Dist;
use penstock_model::{Rng, Span, Time};

pub(crate) const SSH: &[Known] = &[
    o('p', "", true),
    o('P', "", true),
    o('l', "", true),
    o('i', "", true),
    o('o', "", true),
    o('4', "", false),
    o('v', "", false),
    o('X', "", false),
    o('Y', "", false),
    o('C', "", false),
    o('t', "", false),
    o('T', "", false),
    o('q', "", false),
    o('s', "sh", false),
];
pub(crate) const TELNET: &[Known] =
    &[o('4', "", false), o('E', "", false), o('K', "", false), o('l', "", true)];
const SSH_USAGE: &str = "usage: ssh [-1246AaCfgKkMNnqsTtVvXxYy] [-b bind_address] [-c cipher_spec]\n           [-i identity_file] [-l login_name] [-o option] [-p \
    port]\n           [user@]hostname [command]\n";
const TELNET_USAGE: &str = "Usage: telnet [-4] [-6] [-8] [-E] [-L] [-a] [-d] [-e char] [-l user]\n\t[-n tracefile] [ -b addr ] [-r] [host-name [port]]\n";

/// What is typed when nothing else is said.
const COMMANDS: [&str; 3] = ["ls -l", "cd Desktop", "ls -l"];
const LOWDELAY: u8 = 0x10;

/// Which program it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Client {
    Ssh,
    Putty,
    Telnet,
}

/// One session.
pub(crate) struct Session {
    // Parameters
    client: Client,
    user: String,
    target: String,
    port: u16,
    commands: Vec<Typed>,
    /// At a router's console: what is typed is printed with the answers.
    console: bool,
    // Variables
    rng: Rng,
    sock: u32,
    timer: u32,
    round: usize,
    command: usize,
    key: usize,
    asked: Time,
}

impl Session {
    pub(crate) fn ssh(args: &[&str], putty: bool) -> Result<Session, Failure> {
        let (options, words) = options::parse("ssh", args, SSH, SSH_USAGE, 255)?;
        let Some((&target, commands)) = words.split_first() else { return Err(Failure::new(SSH_USAGE, 255)) };
        let (user, host) = target.split_once('@').unwrap_or(("", target));
        let client = if putty { Client::Putty } else { Client::Ssh };
        let mut session = Session::new(client, host, 22);
        user.clone_into(&mut session.user);
        for (letter, value) in options {
            match letter {
                'p' | 'P' => {
                    let wrong = || Failure::new(format!("Bad port '{value}'\n"), 255);
                    session.port = c_number(value)
                        .and_then(|p| u16::try_from(p).ok())
                        .filter(|&p| p > 0)
                        .ok_or_else(wrong)?;
                }
                'l' => value.clone_into(&mut session.user),
                _ => {}
            }
        }
        if !commands.is_empty() {
            session.commands = vec![Typed::command(&commands.join(" "))];
        }
        Ok(session)
    }
    pub(crate) fn telnet(args: &[&str]) -> Result<Session, Failure> {
        let (_, words) = options::parse("telnet", args, TELNET, TELNET_USAGE, 1)?;
        let (target, port) = match words[..] {
            [target] => (target, 23),
            [target, port] => {
                let wrong = || {
                    Failure::new(
                        format!(
                            "telnet: could not resolve {target}/{port}: Servname not supported for ai_socktype\n"
                        ),
                        1,
                    )
                };
                (target, c_number(port).and_then(|p| u16::try_from(p).ok()).ok_or_else(wrong)?)
            }
            _ => return Err(Failure::new(TELNET_USAGE, 1)),
        };
        Ok(Session::new(Client::Telnet, target, port))
    }
    fn new(client: Client, target: &str, port: u16) -> Session {
        Session {
            client,
            user: String::new(),
            target: target.to_owned(),
            port,
            commands: COMMANDS.map(Typed::command).to_vec(),
            console: false,
            rng: Rng::named(0, ""),
            sock: NONE,
            timer: NONE,
            round: 0,
            command: 0,
            key: 0,
            asked: Time::ZERO,
        }
    }
    /// Bytes that a key or an answer of `n` characters takes: ssh pads to blocks of 16 and adds a MAC of 16.
    fn wire(&self, n: u32) -> u64 {
        match self.client {
            Client::Telnet => u64::from(n),
            _ => u64::from((n + 9 + 4).next_multiple_of(16) + 16),
        }
    }
    /// Rounds before the first key: bytes sent and asked for.
    fn rounds(&self) -> &'static [(u64, u64)] {
        match self.client {
            // Telnet options only: the login is typed.
            Client::Telnet if self.console => &[(24, 12)],
            // Telnet options, the login and its password.
            Client::Telnet => &[(24, 36), (30, 60), (8, 10), (8, 200)],
            _ => &[
                (39, 39),
                (792, 784),
                (24, 152),
                (144, 720),
                (16, 48),
                (48, 48),
                (64, 64),
                (144, 32),
                (64, 48),
                (448, 160),
            ],
        }
    }
    fn ask(&mut self, send: u64, answer: u64, cx: &mut Cx<'_>) {
        self.asked = cx.now();
        cx.net.tcp_say(
            self.sock,
            send.max(1),
            Message { kind: ASK, values: vec![answer as i64], text: String::new() },
        );
    }
    fn set_up(&mut self, cx: &mut Cx<'_>) {
        let rounds = self.rounds();
        if let Some(&(send, answer)) = rounds.get(self.round) {
            self.round += 1;
            self.ask(send, answer, cx);
            return;
        }
        self.round += 1;
        let tos = match self.client {
            Client::Ssh => Some(LOWDELAY),
            _ => None,
        };
        if let Some(tos) = tos {
            cx.net.set_tos(self.sock, tos);
            cx.net.tcp_say(
                self.sock,
                16,
                Message { kind: SET_TOS, values: vec![i64::from(tos)], text: String::new() },
            );
        }
        cx.result.rtt = Some(Histogram::default());
        self.think(1000, 3000, cx);
    }
    fn think(&mut self, from_ms: i64, to_ms: i64, cx: &mut Cx<'_>) {
        let gap = Dist::Uniform { from: Span::from_ms(from_ms), to: Span::from_ms(to_ms) };
        let at = cx.now() + gap.draw(&mut self.rng);
        cx.net.set_timer(self.timer, at);
    }
    /// The next key.
    fn press(&mut self, cx: &mut Cx<'_>) {
        let Some(command) = self.commands.get(self.command) else {
            cx.net.tcp_close(self.sock);
            let text = match self.client {
                Client::Telnet => "Connection closed by foreign host.\n".to_owned(),
                _ => format!("Connection to {} closed.\n", self.target),
            };
            cx.print(&text);
            cx.exit(0);
            return;
        };
        self.key += 1;
        if self.key < command.presses() {
            self.ask(self.wire(1), self.wire(1), cx);
        } else {
            let answer = match &command.answer {
                Some(text) => text.len() as u32 + 2,
                None => 100 + self.rng.below(1901),
            };
            self.ask(self.wire(1), self.wire(answer), cx);
        }
    }
    fn answered(&mut self, cx: &mut Cx<'_>) {
        if self.round <= self.rounds().len() {
            self.set_up(cx);
            return;
        }
        let now = cx.now();
        let rtt = now - self.asked;
        cx.result.rtts.push(rtt.as_ns());
        cx.result.rtt_times.push(now);
        if let Some(h) = &mut cx.result.rtt {
            h.record(rtt.as_ns() as u64);
        }
        if let Some(typed) = self.commands.get(self.command).filter(|c| self.key >= c.presses()) {
            if self.console {
                let keys = if typed.seen { typed.keys.trim_end() } else { "" };
                let line = format!("{keys}\n{}", typed.answer.as_deref().unwrap_or_default());
                cx.print(if typed.enter { &line } else { &line[1 + keys.len()..] });
            }
            self.command += 1;
            self.key = 0;
            self.think(1000, 3000, cx);
        } else {
            self.think(80, 300, cx);
        }
    }
    fn failed(&self, error: &str, cx: &mut Cx<'_>) {
        let text = match self.client {
            Client::Telnet => format!("telnet: Unable to connect to remote host: {error}\n"),
            _ => format!("ssh: connect to host {} port {}: {error}\n", self.target, self.port),
        };
        cx.print(&text);
        cx.exit(if self.client == Client::Telnet { 1 } else { 255 });
    }
}

impl Program for Session {
    fn intent(&self) -> Intent {
        Intent::call(&self.target, None, None)
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        let target = self.target.clone();
        let Some(addr) = cx.resolve(&target, Family::Any) else {
            let (text, status) = match self.client {
                Client::Telnet => {
                    (format!("telnet: could not resolve {target}/telnet: Name or service not known\n"), 1)
                }
                _ => (format!("ssh: Could not resolve hostname {target}: Name or service not known\n"), 255),
            };
            cx.print(&text);
            cx.exit(status);
            return;
        };
        if self.client == Client::Telnet {
            cx.print(&format!("Trying {addr}...\n"));
        }
        let name = cx.flow_name();
        self.rng = cx.net.rng(&format!("app:{name}/{}", cx.app));
        self.timer = cx.net.wakes.new_timer(cx.app, 0);
        let to = cx.net.host_of(addr).unwrap_or(cx.host);
        cx.net.wakes.daemons.push((to, self.port));
        if let Some(config) = cx.net.names.consoles.get(&to)
            && self.client == Client::Telnet
            && self.port == 23
        {
            self.console = true;
            self.commands = console::session(config);
        }
        let flow = cx.new_flow(name, cx.host, to, "tcp");
        let mut cfg = cx.net.tcp_config(cx.host);
        cfg.nodelay = true;
        let tos = if self.client == Client::Telnet { LOWDELAY } else { 0 };
        let opts = SockOpts { tos, ..SockOpts::default() };
        match cx.net.tcp_connect(cx.host, cx.app, (addr, self.port), flow, true, opts, cfg) {
            Ok(sock) => self.sock = sock,
            Err(error) => self.failed(error, cx),
        }
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Connected(sock) => {
                let text = match self.client {
                    Client::Telnet => {
                        cx.net.tcp_say(
                            sock,
                            3,
                            Message { kind: SET_TOS, values: vec![i64::from(LOWDELAY)], text: String::new() },
                        );
                        let banner = if self.console { console::BANNER } else { "" };
                        format!("Connected to {}.\nEscape character is '^]'.\n{banner}", self.target)
                    }
                    _ => {
                        let user = if self.user.is_empty() { "root" } else { &self.user };
                        format!("{user}@{}'s password: \n", self.target)
                    }
                };
                cx.print(&text);
                self.set_up(cx);
            }
            Wake::Timer(_) => self.press(cx),
            Wake::Readable(sock) => {
                cx.net.tcp_read(sock);
                while let Some(message) = cx.net.tcp_hear(sock) {
                    if message.kind == ANSWER {
                        self.answered(cx);
                    }
                }
            }
            Wake::Failed(_, error) => self.failed(error, cx),
            _ => {}
        }
    }
}
