//! The other side of `scp`, `ssh` and `telnet`: sshd and telnetd, which every host has.
//!
//! It reads everything and answers what asks for an answer, at once.

use crate::app::{Cx, Program};
use crate::sock::{Listener, Message, SockOpts};
use crate::wake::Wake;

/// Asks for `values[0]` bytes in answer.
pub(crate) const ASK: u32 = 1;
/// Sets the ToS of the answering side to `values[0]`.
pub(crate) const SET_TOS: u32 = 2;
/// An answer.
pub(crate) const ANSWER: u32 = 3;

/// sshd or telnetd.
pub(crate) struct Daemon {
    port: u16,
}

impl Daemon {
    pub(crate) fn new(port: u16) -> Daemon {
        Daemon { port }
    }
}

impl Program for Daemon {
    fn start(&mut self, cx: &mut Cx<'_>) {
        let cfg = cx.net.tcp_config(cx.host);
        let listener = Listener { cfg: Box::new(cfg), backlog: 128, sink: false, fast: Default::default() };
        if cx.net.tcp_listen(cx.host, cx.app, self.port, SockOpts::default(), listener).is_none() {
            // Somebody else has the port: then that program answers.
            cx.exit(1);
        }
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Readable(sock) => {
                cx.net.tcp_read(sock);
                while let Some(message) = cx.net.tcp_hear(sock) {
                    let value = message.values.first().copied().unwrap_or(0);
                    match message.kind {
                        ASK => {
                            let answer = Message { kind: ANSWER, values: Vec::new(), text: String::new() };
                            cx.net.tcp_say(sock, value.max(1) as u64, answer);
                        }
                        SET_TOS => cx.net.set_tos(sock, value as u8),
                        _ => {}
                    }
                }
            }
            Wake::Eof(sock) => cx.net.tcp_close(sock),
            _ => {}
        }
    }
}
