//! What a program is going to do, as far as its command line tells it: to be checked against the network before anything runs.

use penstock_model::Span;
use std::net::IpAddr;

/// What a program is going to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Intent {
    /// Whom it calls.
    pub calls: Option<Call>,
    /// The port it waits at: `tcp` or `udp`, number.
    pub listens: Option<(&'static str, u16)>,
}

/// A call to another machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The other, as the command line names it.
    pub peer: String,
    /// Its address; `None`: nobody is called so.
    pub addr: Option<IpAddr>,
    /// Over which family: `-4` or `-6`, where it says so.
    pub(crate) family: Family,
    /// The port that a program there must listen at, after `tcp` or `udp`; `None` where none need to (`ping`, and `ssh`, whose server
    /// every machine has).
    pub port: Option<(&'static str, u16)>,
    /// How long it sends, where it is told.
    pub lasts: Option<Span>,
}

impl Intent {
    /// It calls somebody.
    pub(crate) fn call(peer: &str, port: Option<(&'static str, u16)>, lasts: Option<Span>) -> Intent {
        let call = Call { peer: peer.to_owned(), addr: None, family: Family::Any, port, lasts };
        Intent { calls: Some(call), ..Intent::default() }
    }
    /// The same over a family.
    pub(crate) fn over(mut self, family: Family) -> Intent {
        if let Some(call) = &mut self.calls {
            call.family = family;
        }
        self
    }
    /// It waits for others.
    pub(crate) fn listen(proto: &'static str, port: u16) -> Intent {
        Intent { listens: Some((proto, port)), ..Intent::default() }
    }
}

/// Which addresses are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Family {
    /// Of either family; of both that of IPv4.
    #[default]
    Any,
    /// `-4`.
    Four,
    /// `-6`.
    Six,
}

impl Family {
    /// Whether an address is of it.
    pub(crate) fn has(self, addr: IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::Four => addr.is_ipv4(),
            Family::Six => addr.is_ipv6(),
        }
    }
}
