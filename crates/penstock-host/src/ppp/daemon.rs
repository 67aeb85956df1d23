//! `pppd` with its plugin `rp-pppoe.so`, and `pppoe-server`: what they say and when.
//!
//! Follows: ppp 2.4.9 `pppd/plugins/rp-pppoe/discovery.c`, `plugin.c`, `pppd/fsm.c`, `lcp.c`, `upap.c`, `ipcp.c`, `main.c`; rp-pppoe 3.15
//! `src/pppoe-server.c` (`processPADI`, `processPADR`, `processPADT`, `childHandler`).
//! Differs: a program answers at once; both ends are these programs, so that nothing is asked for that the other end would not know.

use super::Mac;
use crate::{Host, HostCx, Timer};
use penstock_model::{Span, Time};
use std::net::Ipv4Addr;

/// `PADI_TIMEOUT`, `MAX_PADI_ATTEMPTS`; `DEFTIMEOUT`, `DEFMAXCONFREQS`, `DEFMAXTERMREQS` of `fsm.h`.
const PADI_TIMEOUT: i64 = 5;
const PADI_ATTEMPTS: u32 = 3;
const TIMEOUT: i64 = 3;
const MAX_CONFREQS: u32 = 10;
const MAX_TERMREQS: u32 = 2;
const LCP: u16 = 0xc021;
const PAP: u16 = 0xc023;
const IPCP: u16 = 0x8021;
/// Codes of discovery (RFC 2516), and its tags.
const PADI: u8 = 0x09;
const PADO: u8 = 0x07;
const PADR: u8 = 0x19;
const PADS: u8 = 0x65;
const PADT: u8 = 0xa7;
const SERVICE_NAME: u16 = 0x0101;
const AC_NAME: u16 = 0x0102;
const HOST_UNIQ: u16 = 0x0103;
const AC_COOKIE: u16 = 0x0104;
const GENERIC_ERROR: u16 = 0x0203;
/// Codes of LCP and its like.
const CONFREQ: u8 = 1;
const CONFACK: u8 = 2;
const CONFNAK: u8 = 3;
const CONFREJ: u8 = 4;
const TERMREQ: u8 = 5;
const TERMACK: u8 = 6;
const ECHOREQ: u8 = 9;
const ECHOREP: u8 = 10;
/// Options of IPCP: address, first and second name server.
const ADDR: u8 = 3;
const DNS: [u8; 2] = [129, 131];

/// What a `pppd` was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub mtu: u16,
    pub mru: u16,
    pub user: String,
    pub password: String,
    pub require_pap: bool,
    /// Names and passwords that are let in.
    pub secrets: Vec<(String, String)>,
    pub service: String,
    pub ac: String,
    pub defaultroute: bool,
    pub replacedefaultroute: bool,
    pub usepeerdns: bool,
    pub dns: Vec<Ipv4Addr>,
    pub persist: bool,
    pub maxfail: u32,
    pub holdoff: i64,
    pub echo_interval: i64,
    pub echo_failure: u32,
    /// Own address and the other end's; `None`: what the other end says.
    pub local: Option<Ipv4Addr>,
    pub remote: Option<Ipv4Addr>,
    /// The name of its device.
    pub ifname: String,
}

/// A `pppoe-server`.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub ac: String,
    pub services: Vec<String>,
    pub local: Ipv4Addr,
    pub remote: Ipv4Addr,
    /// Sessions: whose they are, by number less one.
    pub sessions: Vec<Option<Mac>>,
    /// What each `pppd` is asked for.
    pub settings: Settings,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It asks for access concentrators, or one of them for a session.
    Discovery,
    Establish,
    Authenticate,
    Network,
    Terminate,
    Holdoff,
}

/// One direction each of LCP or IPCP.
#[derive(Clone, Copy, Debug, Default)]
struct Fsm {
    id: u8,
    tries: u32,
    due: Option<Time>,
    /// Ours was acknowledged; theirs was.
    ours: bool,
    theirs: bool,
}

/// A `pppd`.
#[derive(Clone, Debug)]
pub(crate) struct Daemon {
    pub set: Settings,
    pub lower: u32,
    /// Index of its device; 0: it has none.
    pub unit: u32,
    peer: Mac,
    sid: u16,
    server: bool,
    phase: Phase,
    /// When discovery, authentication, termination or the pause goes on.
    due: Option<Time>,
    tries: u32,
    cookie: Vec<u8>,
    lcp: Fsm,
    ipcp: Fsm,
    magic: u32,
    /// The other end wants to know who this is; this end knows who the other is, and is known.
    asked: bool,
    knows: bool,
    known: bool,
    peer_mru: u16,
    addr: Ipv4Addr,
    peer_addr: Ipv4Addr,
    dns: Option<[Ipv4Addr; 2]>,
    echo_due: Option<Time>,
    echo_id: u8,
    echos_pending: u32,
    term_id: u8,
    fails: u32,
    /// It has been told to end.
    pub ends: bool,
}

impl Daemon {
    /// One that dials by a device.
    pub(crate) fn new(set: Settings, lower: u32, unit: u32, now: Time) -> Daemon {
        let [addr, peer_addr] = [set.local, set.remote].map(|a| a.unwrap_or(Ipv4Addr::UNSPECIFIED));
        Daemon {
            set,
            lower,
            unit,
            peer: [0; 6],
            sid: 0,
            server: false,
            phase: Phase::Discovery,
            due: Some(now),
            tries: 0,
            cookie: Vec::new(),
            lcp: Fsm::default(),
            ipcp: Fsm::default(),
            magic: 0,
            asked: false,
            knows: false,
            known: false,
            peer_mru: 1500,
            addr,
            peer_addr,
            dns: None,
            echo_due: None,
            echo_id: 0,
            echos_pending: 0,
            term_id: 1,
            fails: 0,
            ends: false,
        }
    }
    /// The device, the other end and the number of its session.
    pub(crate) fn way(&self) -> Option<(u32, Mac, u16)> {
        (self.sid != 0).then_some((self.lower, self.peer, self.sid))
    }
    fn next(&self) -> Option<Time> {
        [self.due, self.lcp.due, self.ipcp.due, self.echo_due].into_iter().flatten().min()
    }
}

fn tag(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend(kind.to_be_bytes());
    out.extend((value.len() as u16).to_be_bytes());
    out.extend(value);
}
fn tag_of(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = bytes.get(6..)?;
    while let [a, b, c, d, ..] = *rest {
        let len = usize::from(u16::from_be_bytes([c, d]));
        let value = rest.get(4..4 + len)?;
        if u16::from_be_bytes([a, b]) == kind {
            return Some(value);
        }
        rest = &rest[4 + len..];
    }
    None
}
/// A frame of discovery, from PPPoE's header on.
fn discovery(code: u8, sid: u16, tags: &[u8]) -> Vec<u8> {
    let mut out = vec![0x11, code];
    out.extend(sid.to_be_bytes());
    out.extend((tags.len() as u16).to_be_bytes());
    out.extend(tags);
    out
}
/// The options of a packet of LCP or IPCP: kind and value.
fn options(mut rest: &[u8]) -> Vec<(u8, &[u8])> {
    let mut all = Vec::new();
    while let [kind, len, ..] = *rest {
        let Some(value) = rest.get(2..usize::from(len)) else { break };
        all.push((kind, value));
        rest = &rest[usize::from(len)..];
    }
    all
}
fn option(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    out.extend([kind, value.len() as u8 + 2]);
    out.extend(value);
}
fn address(value: &[u8]) -> Ipv4Addr {
    value.first_chunk::<4>().map_or(Ipv4Addr::UNSPECIFIED, |a| Ipv4Addr::from(*a))
}

impl Host {
    /// Something is due of a `pppd`.
    #[cold]
    pub(crate) fn ppp_timer_fired(&mut self, pid: u32, cx: &mut HostCx<'_>) {
        let Some(mut d) = self.ppp.daemons.remove(&pid) else { return };
        let due = |at: &mut Option<Time>| at.is_some_and(|t| t <= cx.now) && at.take().is_some();
        let mut alive = true;
        if d.ends && d.phase != Phase::Terminate {
            alive = self.ppp_close(&mut d, cx);
        } else if due(&mut d.due) {
            alive = self.ppp_goes_on(pid, &mut d, cx);
        } else if due(&mut d.lcp.due) || due(&mut d.ipcp.due) {
            let proto = if d.phase == Phase::Establish { LCP } else { IPCP };
            let tries = if proto == LCP { d.lcp.tries } else { d.ipcp.tries };
            // "LCP: timeout sending Config-Requests".
            if tries >= MAX_CONFREQS {
                alive = self.ppp_hangup(&mut d, true, cx);
            } else {
                self.ppp_confreq(&mut d, proto, cx);
            }
        } else if due(&mut d.echo_due) {
            alive = self.ppp_echo(&mut d, cx);
        }
        self.ppp_again(pid, d, alive, cx.now);
    }
    fn ppp_again(&mut self, pid: u32, d: Daemon, alive: bool, now: Time) {
        if !alive {
            self.timers.retain(|t| t != Timer::Ppp(pid));
            return;
        }
        if let Some(at) = d.next() {
            self.timers.insert(at.max(now), Timer::Ppp(pid));
        }
        if d.unit != 0 {
            self.ppp.units.insert(d.unit, pid);
        }
        self.ppp.daemons.insert(pid, d);
    }
    fn ppp_goes_on(&mut self, pid: u32, d: &mut Daemon, cx: &mut HostCx<'_>) -> bool {
        match d.phase {
            Phase::Discovery if d.tries >= PADI_ATTEMPTS => {
                // "Unable to complete PPPoE Discovery".
                d.sid = 0;
                self.ppp_hangup(d, true, cx)
            }
            Phase::Discovery => {
                let mut tags = Vec::new();
                tag(&mut tags, SERVICE_NAME, d.set.service.as_bytes());
                tag(&mut tags, HOST_UNIQ, &pid.to_le_bytes());
                let asks = d.cookie.is_empty();
                if !asks {
                    tag(&mut tags, AC_COOKIE, &d.cookie);
                }
                let to = if asks { [0xff; 6] } else { d.peer };
                let bytes = discovery(if asks { PADI } else { PADR }, 0, &tags);
                self.pppoe_send(d.lower, to, false, &bytes, 0, cx);
                // Each wait is twice as long as the one before.
                d.due = Some(cx.now + Span::from_secs(PADI_TIMEOUT << d.tries));
                d.tries += 1;
                true
            }
            Phase::Terminate if d.tries < MAX_TERMREQS => {
                self.ppp_termreq(d, cx);
                true
            }
            Phase::Holdoff => {
                let fresh = Daemon::new(d.set.clone(), d.lower, 0, cx.now);
                *d = Daemon { fails: d.fails, magic: d.magic, ..fresh };
                true
            }
            // "PAP: No response to authenticate-request".
            _ => self.ppp_hangup(d, true, cx),
        }
    }
    /// `lcp_close`.
    fn ppp_close(&mut self, d: &mut Daemon, cx: &mut HostCx<'_>) -> bool {
        if d.way().is_none() {
            return self.ppp_hangup(d, true, cx);
        }
        (d.phase, d.tries, d.lcp.due, d.ipcp.due, d.echo_due) = (Phase::Terminate, 0, None, None, None);
        d.term_id = d.lcp.id.wrapping_add(1);
        self.ppp_termreq(d, cx);
        true
    }
    fn ppp_termreq(&mut self, d: &mut Daemon, cx: &mut HostCx<'_>) {
        let why: &[u8] = if d.ends { b"User request" } else { b"Peer not responding" };
        self.ppp_say(d, LCP, TERMREQ, d.term_id, why, cx);
        d.tries += 1;
        d.due = Some(cx.now + Span::from_secs(TIMEOUT));
    }
    /// The session is over. `tells`: `pppoe-server` tells the other end (`childHandler`). Whether the program goes on.
    fn ppp_hangup(&mut self, d: &mut Daemon, tells: bool, cx: &mut HostCx<'_>) -> bool {
        if let Some((lower, peer, sid)) = d.way() {
            // Of pppd itself no PADT was seen.
            if tells && d.server {
                let mut tags = Vec::new();
                tag(&mut tags, GENERIC_ERROR, b"RP-PPPoE: Child pppd process terminated");
                self.pppoe_send(lower, peer, false, &discovery(PADT, sid, &tags), 0, cx);
            }
            self.ppp.sessions.remove(&(lower, peer, sid));
            if d.server
                && let Some(server) = self.ppp.servers.get_mut(&lower)
                && let Some(place) = server.sessions.get_mut(usize::from(sid) - 1)
            {
                *place = None;
            }
            d.sid = 0;
        }
        let was_up = d.ipcp.ours && d.ipcp.theirs;
        let ever = d.unit;
        d.fails = if was_up { 0 } else { d.fails + 1 };
        let again = d.set.persist && !d.ends && !d.server && (d.set.maxfail == 0 || d.fails < d.set.maxfail);
        // Where nothing was found the device stays for the next try, which has made none yet.
        if ever != 0 && (!again || was_up || d.lcp.tries > 0) {
            d.unit = 0;
            self.delete_link(ever, cx.now);
            self.ppp_pending(cx);
        }
        (d.phase, d.lcp.due, d.ipcp.due, d.echo_due) = (Phase::Holdoff, None, None, None);
        let unit = d.unit;
        if again {
            let fresh = Daemon::new(d.set.clone(), d.lower, unit, cx.now);
            *d = Daemon { fails: d.fails, phase: Phase::Holdoff, ..fresh };
            d.due = Some(cx.now + Span::from_secs(if was_up { 0 } else { d.set.holdoff }));
        }
        again
    }

    /// A frame of discovery came in.
    pub(super) fn ppp_discovery(
        &mut self,
        lower: u32,
        from: Mac,
        all: bool,
        bytes: &[u8],
        cx: &mut HostCx<'_>,
    ) {
        let &[0x11, code, a, b, ..] = bytes else { return };
        let sid = u16::from_be_bytes([a, b]);
        match code {
            PADI | PADR if (code == PADI) == all => self.ppp_asked(lower, from, code, bytes, cx),
            PADT => {
                let Some(&pid) = self.ppp.sessions.get(&(lower, from, sid)) else { return };
                let Some(mut d) = self.ppp.daemons.remove(&pid) else { return };
                let alive = self.ppp_hangup(&mut d, false, cx);
                self.ppp_again(pid, d, alive, cx.now);
            }
            PADO | PADS => {
                let uniq = tag_of(bytes, HOST_UNIQ).and_then(|v| v.first_chunk::<4>());
                let Some(pid) = uniq.map(|v| u32::from_le_bytes(*v)) else { return };
                let Some(mut d) = self.ppp.daemons.remove(&pid) else { return };
                let ac = tag_of(bytes, AC_NAME).unwrap_or_default();
                let wanted = d.lower == lower && d.phase == Phase::Discovery && d.way().is_none();
                let fits = d.set.ac.is_empty() || ac == d.set.ac.as_bytes();
                let cookie = tag_of(bytes, AC_COOKIE).unwrap_or_default();
                if wanted && code == PADO && d.cookie.is_empty() && fits {
                    (d.peer, d.cookie, d.tries) = (from, cookie.to_vec(), 0);
                    self.ppp_goes_on(pid, &mut d, cx);
                } else if wanted && code == PADS && !d.cookie.is_empty() && from == d.peer && sid != 0 {
                    d.sid = sid;
                    self.ppp_establish(pid, &mut d, cx);
                }
                self.ppp_again(pid, d, true, cx.now);
            }
            _ => {}
        }
    }
    /// `processPADI`, `processPADR`.
    fn ppp_asked(&mut self, lower: u32, from: Mac, code: u8, bytes: &[u8], cx: &mut HostCx<'_>) {
        let Some(server) = self.ppp.servers.get_mut(&lower) else { return };
        let asked = tag_of(bytes, SERVICE_NAME).unwrap_or_default();
        if !asked.is_empty() && !server.services.iter().any(|s| s.as_bytes() == asked) {
            return;
        }
        let mut cookie = vec![0; 20];
        let seed = self.seed;
        for (n, byte) in cookie.iter_mut().enumerate() {
            *byte = (seed >> (n % 8 * 8)) as u8 ^ from[n % 6] ^ n as u8;
        }
        let uniq = tag_of(bytes, HOST_UNIQ);
        let mut tags = Vec::new();
        let first = server.services.first().map_or("", String::as_str).to_owned();
        if code == PADI {
            tag(&mut tags, AC_NAME, server.ac.as_bytes());
            if server.services.is_empty() {
                tag(&mut tags, SERVICE_NAME, b"");
            }
            server.services.iter().for_each(|s| tag(&mut tags, SERVICE_NAME, s.as_bytes()));
            tag(&mut tags, AC_COOKIE, &cookie);
            uniq.into_iter().for_each(|u| tag(&mut tags, HOST_UNIQ, u));
            self.pppoe_send(lower, from, false, &discovery(PADO, 0, &tags), 0, cx);
            return;
        }
        if tag_of(bytes, AC_COOKIE) != Some(&cookie) {
            return;
        }
        let Some(n) = server.sessions.iter().position(Option::is_none) else { return };
        server.sessions[n] = Some(from);
        let (sid, mut set) = (n as u16 + 1, server.settings.clone());
        set.local = Some(server.local);
        set.remote = Some(Ipv4Addr::from(server.remote.to_bits().wrapping_add(n as u32)));
        let asked = if asked.is_empty() { first.as_bytes() } else { asked };
        tag(&mut tags, SERVICE_NAME, asked);
        uniq.into_iter().for_each(|u| tag(&mut tags, HOST_UNIQ, u));
        self.pppoe_send(lower, from, false, &discovery(PADS, sid, &tags), 0, cx);
        let mut d = Daemon::new(set, lower, 0, cx.now);
        (d.server, d.sid, d.peer, d.due) = (true, sid, from, None);
        self.ppp.last += 1;
        let pid = self.ppp.last;
        self.ppp_establish(pid, &mut d, cx);
        self.ppp_again(pid, d, true, cx.now);
    }
    /// The session is there: the device, and the first request of LCP.
    fn ppp_establish(&mut self, pid: u32, d: &mut Daemon, cx: &mut HostCx<'_>) {
        self.ppp.sessions.insert((d.lower, d.peer, d.sid), pid);
        // Somebody may have taken the device away, or its name.
        if self.devices.get(d.unit).is_none() {
            let free = !d.set.ifname.is_empty() && self.ifindex(&d.set.ifname).is_none();
            let name = if free { d.set.ifname.clone() } else { self.free_name("ppp") };
            d.unit = self.new_device(&name, "ppp", None);
        }
        let below = self.devices.get(d.lower).map_or(1500, |l| l.mtu).saturating_sub(8).min(65_535) as u16;
        (d.set.mru, d.set.mtu) = (d.set.mru.min(below), d.set.mtu.min(below));
        d.magic = self.devices[d.unit].rng.next_u32();
        (d.phase, d.due, d.tries) = (Phase::Establish, None, 0);
        d.lcp.id = 1;
        self.ppp_confreq(d, LCP, cx);
    }
    fn ppp_say(&mut self, d: &Daemon, proto: u16, code: u8, id: u8, body: &[u8], cx: &mut HostCx<'_>) {
        let len = body.len() as u16 + 4;
        let mut bytes = vec![0x11, 0];
        bytes.extend(d.sid.to_be_bytes());
        bytes.extend((len + 2).to_be_bytes());
        bytes.extend(proto.to_be_bytes());
        bytes.extend([code, id]);
        bytes.extend(len.to_be_bytes());
        bytes.extend(body);
        let counted = if proto < 0xc000 { d.unit } else { 0 };
        self.pppoe_send(d.lower, d.peer, true, &bytes, counted, cx);
    }
    fn ppp_confreq(&mut self, d: &mut Daemon, proto: u16, cx: &mut HostCx<'_>) {
        let mut body = Vec::new();
        if proto == LCP {
            if d.set.mru != 1500 {
                option(&mut body, 1, &d.set.mru.to_be_bytes());
            }
            if d.set.require_pap {
                option(&mut body, 3, &PAP.to_be_bytes());
            }
            option(&mut body, 5, &d.magic.to_be_bytes());
        } else {
            option(&mut body, ADDR, &d.addr.octets());
            let dns = d.dns.into_iter().flatten().zip(DNS);
            dns.for_each(|(addr, kind)| option(&mut body, kind, &addr.octets()));
        }
        let fsm = if proto == LCP { &mut d.lcp } else { &mut d.ipcp };
        fsm.tries += 1;
        fsm.due = Some(cx.now + Span::from_secs(TIMEOUT));
        let id = fsm.id;
        self.ppp_say(d, proto, CONFREQ, id, &body, cx);
    }
    /// A message of a session.
    pub(super) fn ppp_message(&mut self, pid: u32, bytes: &[u8], cx: &mut HostCx<'_>) {
        let Some(mut d) = self.ppp.daemons.remove(&pid) else { return };
        let alive = self.ppp_heard(&mut d, bytes, cx).unwrap_or(true);
        self.ppp_again(pid, d, alive, cx.now);
    }
    /// Whether the program goes on.
    fn ppp_heard(&mut self, d: &mut Daemon, bytes: &[u8], cx: &mut HostCx<'_>) -> Option<bool> {
        let proto = u16::from_be_bytes(*bytes.get(6..)?.first_chunk::<2>()?);
        let (&[code, id], body) = (bytes.get(8..)?.first_chunk::<2>()?, bytes.get(12..)?);
        match (proto, code) {
            (LCP, CONFREQ) => {
                for (kind, value) in options(body) {
                    match kind {
                        1 => d.peer_mru = u16::from_be_bytes(*value.first_chunk::<2>()?),
                        3 => d.asked = true,
                        _ => {}
                    }
                }
                self.ppp_say(d, LCP, CONFACK, id, body, cx);
                d.lcp.theirs = true;
                self.ppp_lcp_up(d, cx);
            }
            (LCP, CONFACK) if id == d.lcp.id && d.phase == Phase::Establish => {
                (d.lcp.ours, d.lcp.due) = (true, None);
                self.ppp_lcp_up(d, cx);
            }
            (LCP, ECHOREQ) if d.phase != Phase::Establish => {
                self.ppp_say(d, LCP, ECHOREP, id, &d.magic.to_be_bytes(), cx);
            }
            (LCP, ECHOREP) => d.echos_pending = 0,
            (LCP, TERMREQ) => {
                self.ppp_say(d, LCP, TERMACK, id, &[], cx);
                (d.phase, d.tries, d.lcp.due, d.ipcp.due) = (Phase::Terminate, MAX_TERMREQS, None, None);
                (d.echo_due, d.due) = (None, Some(cx.now + Span::from_secs(TIMEOUT)));
            }
            (LCP, TERMACK) if d.phase == Phase::Terminate => return Some(self.ppp_hangup(d, true, cx)),
            (PAP, 1) => {
                let user = body.get(1..1 + usize::from(*body.first()?))?;
                let rest = body.get(1 + user.len()..)?;
                let password = rest.get(1..1 + usize::from(*rest.first()?))?;
                let fits = |(name, word): &(String, String)| {
                    (name == "*" || name.as_bytes() == user) && word.as_bytes() == password
                };
                d.knows = d.set.secrets.iter().any(fits);
                let (code, said) = if d.knows { (2, "Login ok") } else { (3, "Login incorrect") };
                let said: Vec<u8> = [said.len() as u8].into_iter().chain(said.bytes()).collect();
                self.ppp_say(d, PAP, code, id, &said, cx);
                if !d.knows {
                    return Some(self.ppp_close(d, cx));
                }
                self.ppp_network(d, cx);
            }
            (PAP, 2) => {
                d.known = true;
                self.ppp_network(d, cx);
            }
            (PAP, 3) => return Some(self.ppp_close(d, cx)),
            (IPCP, _) => self.ppp_ipcp(d, code, id, body, cx),
            _ => {}
        }
        None
    }
    /// `lcp_up`, `link_established`.
    fn ppp_lcp_up(&mut self, d: &mut Daemon, cx: &mut HostCx<'_>) {
        if !(d.lcp.ours && d.lcp.theirs) || d.phase != Phase::Establish {
            return;
        }
        d.phase = Phase::Authenticate;
        if d.set.echo_interval > 0 {
            self.ppp_echo_request(d, cx);
        }
        if d.asked {
            let (user, word) = (d.set.user.as_bytes(), d.set.password.as_bytes());
            let mut body = vec![user.len() as u8];
            body.extend(user);
            body.push(word.len() as u8);
            body.extend(word);
            self.ppp_say(d, PAP, 1, 1, &body, cx);
            d.due = Some(cx.now + Span::from_secs(30));
        }
        self.ppp_network(d, cx);
    }
    /// `LcpSendEchoRequest`, `LcpEchoTimeout`.
    fn ppp_echo(&mut self, d: &mut Daemon, cx: &mut HostCx<'_>) -> bool {
        if d.set.echo_failure > 0 && d.echos_pending >= d.set.echo_failure {
            return self.ppp_close(d, cx);
        }
        self.ppp_echo_request(d, cx);
        true
    }
    fn ppp_echo_request(&mut self, d: &mut Daemon, cx: &mut HostCx<'_>) {
        self.ppp_say(d, LCP, ECHOREQ, d.echo_id, &d.magic.to_be_bytes(), cx);
        (d.echo_id, d.echos_pending) = (d.echo_id.wrapping_add(1), d.echos_pending + 1);
        d.echo_due = Some(cx.now + Span::from_secs(d.set.echo_interval));
    }
    /// Everybody is who they say: IPCP begins.
    fn ppp_network(&mut self, d: &mut Daemon, cx: &mut HostCx<'_>) {
        let open = (!d.asked || d.known) && (!d.set.require_pap || d.knows);
        if !open || d.phase != Phase::Authenticate {
            return;
        }
        (d.phase, d.due, d.ipcp.id) = (Phase::Network, None, 1);
        if d.set.usepeerdns {
            d.dns = Some([Ipv4Addr::UNSPECIFIED; 2]);
        }
        self.ppp_confreq(d, IPCP, cx);
    }
    fn ppp_ipcp(&mut self, d: &mut Daemon, code: u8, id: u8, body: &[u8], cx: &mut HostCx<'_>) {
        if d.phase != Phase::Network {
            return;
        }
        match code {
            CONFREQ => {
                let (mut nak, mut rej) = (Vec::new(), Vec::new());
                for (kind, value) in options(body) {
                    let asked = address(value);
                    let dns = DNS.iter().position(|k| *k == kind);
                    let right = match (kind, dns) {
                        (ADDR, _) => d.set.remote.or(Some(asked)),
                        (_, Some(n)) => d.set.dns.get(n).or(d.set.dns.last()).copied(),
                        _ => None,
                    };
                    match right {
                        None => option(&mut rej, kind, value),
                        Some(right) if right != asked => option(&mut nak, kind, &right.octets()),
                        Some(_) if kind == ADDR => d.peer_addr = asked,
                        Some(_) => {}
                    }
                }
                let (code, said) = match (rej.is_empty(), nak.is_empty()) {
                    (false, _) => (CONFREJ, &rej[..]),
                    (true, false) => (CONFNAK, &nak[..]),
                    (true, true) => (CONFACK, body),
                };
                d.ipcp.theirs = code == CONFACK;
                self.ppp_say(d, IPCP, code, id, said, cx);
            }
            CONFACK if id == d.ipcp.id => (d.ipcp.ours, d.ipcp.due) = (true, None),
            CONFNAK | CONFREJ if id == d.ipcp.id => {
                for (kind, value) in options(body) {
                    match (code, DNS.iter().position(|k| *k == kind)) {
                        (CONFNAK, None) if kind == ADDR => d.addr = address(value),
                        (CONFNAK, Some(n)) => d.dns.iter_mut().for_each(|dns| dns[n] = address(value)),
                        (_, Some(_)) => d.dns = None,
                        _ => {}
                    }
                }
                d.ipcp.id = d.ipcp.id.wrapping_add(1);
                self.ppp_confreq(d, IPCP, cx);
            }
            _ => {}
        }
        let up = self.devices.get(d.unit).is_some_and(|u| u.up);
        if d.ipcp.ours && d.ipcp.theirs && !up {
            self.ppp_ip_up(d, cx);
        }
    }
    /// `ipcp_up`: MTU, addresses and the default route.
    fn ppp_ip_up(&mut self, d: &Daemon, cx: &mut HostCx<'_>) {
        let Some(name) = self.devices.get(d.unit).map(|u| u.name.clone()) else { return };
        let (addr, peer, mtu) = (d.addr, d.peer_addr, d.set.mtu.min(d.peer_mru));
        let mut all = vec![
            format!("ip link set dev {name} mtu {mtu} up"),
            format!("ip addr add {addr} peer {peer} dev {name}"),
        ];
        let has = self.fib.search(Ipv4Addr::new(192, 0, 2, 1)).kind.is_some();
        if d.set.replacedefaultroute {
            all.push(format!("ip route replace default dev {name}"));
        } else if d.set.defaultroute && !has {
            all.push(format!("ip route add default dev {name}"));
        }
        for line in all {
            self.exec(&line, cx.now);
        }
        self.ppp_pending(cx);
    }
}
