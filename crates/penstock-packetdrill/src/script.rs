//! A script as data: what happens, and when.

use penstock_packet::AccEcn;

/// A fault in a script's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The line, from 1; 0: none in particular.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Fault {
        Fault { line, message: message.into() }
    }
}

/// A whole script.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` at its beginning.
    pub options: Vec<(String, Option<String>)>,
    /// Commands before the first event.
    pub init: Option<String>,
    /// What happens.
    pub events: Vec<Event>,
    /// Commands behind the last event, however the script ends.
    pub cleanup: Option<String>,
}

/// When an event is due, microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// After the script's begin.
    At(i64),
    /// After the event before.
    After(i64),
    /// Within a range after the script's begin.
    Between(i64, i64),
    /// Within a range after the event before.
    Within(i64, i64),
    /// `*`: some time.
    Any,
}

/// Something that happens.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Its line.
    pub line: u32,
    /// When.
    pub when: When,
    /// What.
    pub action: Action,
}

/// What happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet comes in, or is to leave.
    Packet(Packet),
    /// A system call.
    Call(Call),
    /// Commands of the shell.
    Command(String),
    /// A piece of Python about the socket.
    Code(String),
}

/// What is checked of, or put into, the type of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tos {
    /// Nothing; 0 in what comes in.
    #[default]
    Any,
    /// The ECN field.
    Ecn(u8),
    /// Either of ECT(0) and ECT(1).
    Ect,
    /// The whole byte.
    Whole(u8),
}

/// A TCP segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// It comes in (`<`), or is to leave (`>`).
    pub inbound: bool,
    /// Type of service.
    pub tos: Tos,
    /// Time to live.
    pub ttl: Option<u8>,
    /// Source and destination port, where they are not the connection's.
    pub ports: Option<(u16, u16)>,
    /// Flags, as in the header.
    pub flags: u16,
    /// Sequence number of the script.
    pub seq: u32,
    /// Payload, bytes.
    pub len: u32,
    /// Acknowledgement number; 0 without one.
    pub ack: u32,
    /// Window as it stands in the header.
    pub window: Option<u16>,
    /// Options in order; `None`: any (`<...>`).
    pub options: Option<Vec<TcpOption>>,
}

/// An option of TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// `nop`.
    Nop,
    /// `eol`.
    Eol,
    /// `mss N`.
    Mss(u16),
    /// `wscale N`.
    Wscale(u8),
    /// `ECN e1b N ceb N e0b N` (order 1), `ECN e0b N ceb N e1b N`: that of Accurate ECN.
    AccEcn(AccEcn),
    /// `sackOK`.
    SackOk,
    /// `sack L:R …`.
    Sack(Vec<(u32, u32)>),
    /// `TS val N ecr N`.
    Timestamps(u32, u32),
    /// `FO COOKIE`, or `FOEXP COOKIE` in the form of the experiment (`true`); without a cookie the request for one.
    FastOpen(Vec<u8>, bool),
}

/// A system call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// When it ends, microseconds, where it takes time: after the same moment as its begin.
    pub ends: Option<i64>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// What it is to answer.
    pub result: Expr,
    /// The error it is to set.
    pub errno: Option<String>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// `...`: whatever is right.
    Ellipsis,
    /// A number.
    Int(i64),
    /// A name, mostly a constant's.
    Word(String),
    /// A text.
    Str(String),
    /// `[…]`.
    List(Vec<Expr>),
    /// `{…}`.
    Fields(Vec<Expr>),
    /// `a|b`.
    Or(Box<Expr>, Box<Expr>),
    /// `a=b`.
    Is(Box<Expr>, Box<Expr>),
    /// `f(…)`.
    Of(String, Vec<Expr>),
}
