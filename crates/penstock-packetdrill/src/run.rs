//! Runs a script: events in their order and at their times, in virtual time.
//!
//! Follows: google/packetdrill `run.c`, `run_packet.c`, `run_system_call.c`, `run_command.c`.
//! Differs: time goes on as the script says, and 10 µs with each call and each packet that comes in; code is looked at when its turn comes, not at the end.

use crate::code::Names;
use crate::net::{Kind, Left, Net, Setting, at_us, us_since_begin};
use crate::script::{Action, Call, Event, Expr, Packet, Script, Tos, When};
use crate::sys::{Answer, CALLS, Files, Job, number};
use crate::wire::{differs, header_of};
use crate::words::errno;
use crate::{Failure, Options, Report, info};
use penstock_model::{Span, Time};
use penstock_packet::TcpFlags;
use penstock_shell::{At, Kept, Shell};
use std::net::IpAddr;

/// How long after its time a packet is waited for, microseconds.
const PATIENCE: i64 = 2_000_000;
/// How long a call may take that says nothing of it, microseconds.
const LONGEST_CALL: i64 = 600_000_000;

/// Where the restoring script is kept, in the interpreter's memory.
const SCRATCH: &str = "/tmp";
/// What a call of the program costs, or a packet on its way in: no two things happen at the very same instant.
const COST: Span = Span::from_us(10);

/// Where the interpreter finds what lies beside the script.
const FOLDER: &str = "/root/p/a/c/k";

/// The script's options.
#[derive(Clone, Debug)]
struct Settings {
    tolerance_us: i64,
    tolerance_percent: f64,
    ts_tick_us: i64,
    strict: bool,
}

/// How the numbers of the script stand to those of the connection.
#[derive(Clone, Copy, Debug, Default)]
struct Mapping {
    /// The script's sequence numbers of our side less the machine's.
    local: u32,
    /// The number of the peer's SYN: what it sends behind it counts from there.
    remote: u32,
    /// The same of timestamps, once one has left.
    stamps: Option<u32>,
    /// Ports of the connection: ours, the peer's.
    ports: (u16, u16),
}

/// A call that takes time.
struct Pending {
    line: u32,
    call: Call,
    job: Job,
    /// When it began; when it is to end, where the script says so.
    began: i64,
    ends: Option<i64>,
}

struct Run<'a> {
    net: Net,
    files: Files,
    shell: Shell,
    set: Settings,
    map: Mapping,
    /// The socket under test.
    current: Option<usize>,
    names: Names,
    pending: Option<Pending>,
    /// When the event before was due, and whether it was a packet that came in.
    last: Option<(i64, bool)>,
    report: &'a mut Report,
}

type Ran<T = ()> = Result<T, Failure>;

fn fail<T>(line: u32, message: impl Into<String>) -> Ran<T> {
    Err(Failure { line, message: message.into() })
}

/// Runs a whole script.
pub(crate) fn run(script: &Script, options: &Options, report: &mut Report) -> Ran {
    let (set, setting) = settings(script, options)?;
    for event in &script.events {
        if let Action::Call(call) = &event.action
            && !CALLS.contains(&call.name.as_str())
        {
            return fail(event.line, format!("{} is not run here: there are {}", call.name, CALLS.join(" ")));
        }
    }
    let net = Net::new(options.kernel, &setting).map_err(|message| Failure { line: 0, message })?;
    let mut lent: Vec<(String, String)> =
        options.files.iter().map(|(path, text)| (place(path), lent(path, text))).collect();
    // So that the folder is there.
    lent.push((format!("{FOLDER}/.packetdrill"), String::new()));
    let mut run = Run {
        net,
        files: Files::default(),
        shell: Shell::new("packetdrill", &lent),
        set,
        map: Mapping::default(),
        current: None,
        names: info::constants(),
        pending: None,
        last: None,
        report,
    };
    if let Some(init) = &script.init {
        run.command(0, init)?;
    }
    let done = run.events(&script.events);
    if let Some(cleanup) = &script.cleanup {
        let cleaned = run.command(0, cleanup);
        return done.and(cleaned);
    }
    done
}

/// Where a file stands whose path goes from the script's folder.
fn place(path: &str) -> String {
    let mut parts: Vec<&str> = FOLDER.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// `set_sysctls.py` is Python; this does what it does.
fn lent(path: &str, text: &str) -> String {
    if !path.ends_with("set_sysctls.py") {
        return text.to_owned();
    }
    let restore = format!("{SCRATCH}/sysctl_restore_1.sh");
    format!(
        "#!/bin/bash\necho '#!/bin/bash' > {restore}\nfor a in \"$@\"; do\n  f=${{a%%=*}}; v=${{a#*=}}\n  \
         echo \"echo '$(cat $f)' > $f\" >> {restore}\n  echo \"$v\" > $f\ndone\nchmod u+x {restore}\n"
    )
}

fn settings(script: &Script, options: &Options) -> Ran<(Settings, Setting)> {
    let mut set = Settings { tolerance_us: 4_000, tolerance_percent: 12.5, ts_tick_us: 0, strict: false };
    let of = |name: &str| script.options.iter().rev().find(|o| o.0 == name).and_then(|o| o.1.as_deref());
    let six = of("ip_version").is_some_and(|v| v == "ipv6");
    let mut setting = Setting::new(six);
    setting.hz = options.hz;
    for (name, value) in &script.options {
        let bad = || Failure {
            line: 0,
            message: format!("--{name}={} is not understood", value.as_deref().unwrap_or("")),
        };
        let text = value.as_deref().unwrap_or("");
        let whole = || text.parse::<i64>().map_err(|_| bad());
        let address = || {
            let text = text.split('/').next().unwrap_or("");
            text.parse::<IpAddr>().ok().filter(|a| a.is_ipv6() == six).ok_or_else(bad)
        };
        match name.as_str() {
            "tolerance_usecs" => set.tolerance_us = whole()?,
            "tolerance_percent" => set.tolerance_percent = text.parse().map_err(|_| bad())?,
            "tcp_ts_tick_usecs" => set.ts_tick_us = whole()?.clamp(0, 1_000_000),
            "strict_segments" => set.strict = true,
            "mtu" => setting.mtu = whole()?.clamp(576, 65_535) as u32,
            "mss" => setting.mss = whole()?.clamp(1, 65_535) as u32,
            "local_ip" => setting.local = address()?,
            "remote_ip" => setting.remote = address()?,
            "gateway_ip" => setting.gateway = address()?,
            "ip_version" if matches!(text, "ipv4" | "ipv6") => {}
            // Whether packetdrill gives its own buffer back says nothing of the socket.
            "define" | "verbose" | "v" | "netmask_ip" | "send_omit_free" => {}
            _ => {
                return fail(
                    0,
                    format!(
                        "--{name} is not run here: there are define ip_version local_ip remote_ip gateway_ip mtu mss strict_segments tolerance_usecs \
                     tolerance_percent tcp_ts_tick_usecs"
                    ),
                );
            }
        }
    }
    Ok((set, setting))
}

fn secs(us: i64) -> String {
    format!("{:.6}", us as f64 / 1e6)
}

impl Run<'_> {
    fn events(&mut self, events: &[Event]) -> Ran {
        for event in events {
            self.event(event)?;
        }
        // A call that takes time is waited for.
        self.idle()
    }

    fn event(&mut self, event: &Event) -> Ran {
        let inbound = matches!(&event.action, Action::Packet(p) if p.inbound);
        let now = self.net.script_us();
        let offset = match self.last {
            Some((at, true)) if inbound => at,
            _ => now,
        };
        let (from, to) = match event.when {
            When::At(a) => (a, a),
            When::After(a) => (offset + a, offset + a),
            When::Between(a, b) => (a, b),
            When::Within(a, b) => (offset + a, offset + b),
            When::Any => (offset, i64::MAX),
        };
        match &event.action {
            Action::Packet(p) if !p.inbound => self.outbound(event, p, (from, to), offset)?,
            action => {
                self.advance(from)?;
                let late = self.net.script_us() - from;
                if self.last.is_some() && late > self.tolerance(from) {
                    let what = match action {
                        Action::Packet(_) => "inbound packet",
                        Action::Call(_) => "system call start",
                        Action::Command(_) => "command",
                        Action::Code(_) => "data collection for code",
                    };
                    let (at, is, tolerance) = (secs(from), secs(from + late), secs(self.tolerance(from)));
                    return fail(
                        event.line,
                        format!(
                            "timing error: expected {what} at {at} sec but happened at {is} sec; tolerance {tolerance} sec"
                        ),
                    );
                }
                self.net.now += COST;
                match action {
                    Action::Packet(p) => self.inbound(event.line, p)?,
                    Action::Call(call) => {
                        self.call(event.line, call, matches!(event.when, When::After(_)).then_some(offset))?
                    }
                    Action::Command(text) => self.command(event.line, text)?,
                    Action::Code(text) => self.code(event.line, text)?,
                }
            }
        }
        self.last = Some((from, inbound));
        Ok(())
    }

    /// How far from its time something may be, microseconds.
    fn tolerance(&self, due: i64) -> i64 {
        let since = self.last.map_or(0, |l| due - l.0);
        self.set.tolerance_us.max((self.set.tolerance_percent / 100.0 * since as f64) as i64)
    }

    // ---- Time ----

    /// Goes on to a moment; a call under way may end meanwhile.
    fn advance(&mut self, us: i64) -> Ran {
        let to = at_us(us);
        loop {
            self.try_pending()?;
            match self.next_event() {
                Some(at) if at <= to => self.net.step(at),
                _ => break,
            }
        }
        if self.net.now < to {
            self.net.now = to;
        }
        self.try_pending()
    }
    fn next_event(&self) -> Option<Time> {
        let poll = self.pending.as_ref().and_then(|p| match p.job {
            Job::Poll { until, .. } => until,
            _ => None,
        });
        self.net.next_event().into_iter().chain(poll).min()
    }
    /// Waits until no call is under way.
    fn idle(&mut self) -> Ran {
        self.try_pending()?;
        while let Some(p) = &self.pending {
            let limit = p.ends.unwrap_or(p.began).max(self.net.script_us()) + PATIENCE;
            let limit = if p.ends.is_some() { limit } else { p.began + LONGEST_CALL };
            let (line, name) = (p.line, p.call.name.clone());
            match self.next_event() {
                Some(at) if us_since_begin(at) <= limit => self.net.step(at),
                _ => return fail(line, format!("{name} waits, and nothing comes that would end it")),
            }
            self.try_pending()?;
        }
        Ok(())
    }

    // ---- Calls ----

    fn call(&mut self, line: u32, call: &Call, offset: Option<i64>) -> Ran {
        self.idle()?;
        let fault = |message: String| Failure { line, message };
        let job = self.files.begin(&mut self.net, call).map_err(fault)?;
        if let Job::Connect(n) = &job {
            self.connects(*n);
        } else if let Job::Write { n, opens: true, .. } = &job {
            self.connects(*n);
        } else if matches!(call.name.as_str(), "connect" | "send" | "sendto" | "sendmsg" | "write" | "writev")
            && let Some(n) =
                call.args.first().and_then(|fd| number(fd).ok()).and_then(|fd| self.files.0.get(&fd).copied())
            && matches!(&self.net.socks[n].kind, Kind::Tcp(end) if end.state() == penstock_tcp::State::SynSent)
        {
            self.connects(n);
        } else if call.name == "connect"
            && let Some(n) =
                call.args.first().and_then(|fd| number(fd).ok()).and_then(|fd| self.files.0.get(&fd).copied())
        {
            self.connects(n);
        }
        let ends = call.ends.map(|e| e + offset.unwrap_or(0));
        self.pending = Some(Pending { line, call: call.clone(), job, began: self.net.script_us(), ends });
        self.try_pending()?;
        if ends.is_none() {
            self.idle()?;
        }
        Ok(())
    }
    /// The socket under test connects.
    fn connects(&mut self, n: usize) {
        let sock = &self.net.socks[n];
        if self.current != Some(n) || self.map.ports != (sock.local.1, sock.remote.1) {
            self.current = Some(n);
            self.map = Mapping { ports: (sock.local.1, sock.remote.1), ..Mapping::default() };
        }
    }

    /// Lets the call under way go on, and looks at what it answers.
    fn try_pending(&mut self) -> Ran {
        let Some(mut p) = self.pending.take() else { return Ok(()) };
        let fault = |message: String| Failure { line: p.line, message };
        let done = self.files.go_on(&mut self.net, &mut p.job).map_err(fault)?;
        let Some((answer, made)) = done else {
            self.pending = Some(p);
            return Ok(());
        };
        let (line, now) = (p.line, self.net.script_us());
        if let Some(n) = made {
            let Expr::Int(fd) = p.call.result else {
                return match answer {
                    Answer::Value(_) => {
                        fail(line, format!("{}: the number of a file is expected", p.call.name))
                    }
                    Answer::Error(error) => fail(line, error),
                };
            };
            if fd < 0 {
                return fail(line, format!("Expected result {fd} but {} made a socket", p.call.name));
            }
            self.files.0.insert(fd, n);
        } else {
            self.compare(line, &p.call, answer)?;
        }
        if let Some(ends) = p.ends {
            let tolerance = self
                .set
                .tolerance_us
                .max((self.set.tolerance_percent / 100.0 * (ends - p.began) as f64) as i64);
            if (now - ends).abs() > tolerance {
                let (at, is, tolerance) = (secs(ends), secs(now), secs(tolerance));
                return fail(
                    line,
                    format!(
                        "timing error: expected system call return at {at} sec but happened at {is} sec; tolerance {tolerance} sec"
                    ),
                );
            }
        }
        Ok(())
    }
    fn compare(&self, line: u32, call: &Call, answer: Answer) -> Ran {
        let (is, error) = match answer {
            Answer::Value(v) => (v, None),
            Answer::Error(e) => (-1, Some(e)),
        };
        let told = error.map_or(String::new(), |e| format!(" with errno {} ({})", errno(e).0, errno(e).1));
        if !matches!(call.result, Expr::Ellipsis) {
            let expected = number(&call.result).map_err(|message| Failure { line, message })?;
            if expected != is {
                return fail(line, format!("{}: Expected result {expected} but got {is}{told}", call.name));
            }
        }
        match (&call.errno, error) {
            (Some(expected), Some(is)) if expected != is => {
                let (e, i) = (errno(expected), errno(is));
                fail(
                    line,
                    format!("{}: Expected errno {} ({}) but got {} ({})", call.name, e.0, e.1, i.0, i.1),
                )
            }
            (Some(expected), None) => {
                fail(line, format!("{}: Expected errno {expected} but got none", call.name))
            }
            _ => Ok(()),
        }
    }

    // ---- Commands and code ----

    fn command(&mut self, line: u32, text: &str) -> Ran {
        // The script's own process has this number here.
        let text = text.replace("${PPID}", "1").replace("$PPID", "1");
        let mut kept = Kept::default();
        let mut machine = At { now: self.net.now, host: &mut self.net.host };
        let done = self.shell.line(&format!("cd {FOLDER}\n{text}"), &mut machine, &mut kept);
        self.net.effects();
        self.net.settings_changed();
        self.net.routes_changed();
        self.net.pump_all();
        self.report.printed.push_str(&kept.stdout);
        let said = kept.stderr.lines().last().unwrap_or("").to_owned();
        match done {
            Ok(0) => Ok(()),
            Ok(status) => fail(line, format!("error executing command: status {status}: {said}")),
            Err(why) => fail(line, format!("error executing command: {why}")),
        }
    }

    fn code(&mut self, line: u32, text: &str) -> Ran {
        if let Some(n) = self.current {
            info::tell(&mut self.names, &self.net.socks[n], self.net.now);
        }
        self.names.run(text, &mut self.report.printed).map_err(|message| Failure { line, message })
    }

    // ---- Packets ----

    fn inbound(&mut self, line: u32, p: &Packet) -> Ran {
        let syn = p.flags & TcpFlags::SYN.0 != 0 && p.flags & TcpFlags::ACK.0 == 0;
        if syn
            && p.ports.is_none()
            && let Some(n) = self.net.socks.iter().position(|s| matches!(s.kind, Kind::Listens(_)))
            && !self.is_opening()
        {
            let port = self.net.peer_port();
            self.map = Mapping { ports: (self.net.socks[n].local.1, port), ..Mapping::default() };
            self.current = None;
        }
        if self.map.ports == (0, 0) && p.ports.is_none() {
            return fail(line, "no matching socket for script packet");
        }
        let mut tcp = header_of(p, p.ports.unwrap_or((self.map.ports.1, self.map.ports.0)));
        if tcp.flags.has(TcpFlags::SYN) {
            self.map.remote = tcp.seq;
        } else {
            tcp.seq = tcp.seq.wrapping_add(self.map.remote);
        }
        if tcp.flags.has(TcpFlags::ACK) {
            tcp.ack = tcp.ack.wrapping_sub(self.map.local);
        }
        if let Some((_, ecr)) = &mut tcp.timestamps
            && let Some(offset) = self.map.stamps
        {
            *ecr = ecr.wrapping_sub(offset);
        }
        for (left, right) in &mut tcp.sack[..usize::from(tcp.sack_count)] {
            (*left, *right) = (left.wrapping_sub(self.map.local), right.wrapping_sub(self.map.local));
        }
        let tos = match p.tos {
            Tos::Any | Tos::Ect => 0,
            Tos::Ecn(ecn) => ecn,
            Tos::Whole(tos) => tos,
        };
        self.net.inject(tcp, p.len, tos);
        if self.current.is_none() {
            let (local, remote) = self.map.ports;
            self.current =
                self.net.socks.iter().position(|s| {
                    matches!(s.kind, Kind::Tcp(_)) && s.local.1 == local && s.remote.1 == remote
                });
        }
        self.try_pending()
    }
    /// Whether the connection under test has not been opened yet: a SYN is one of it.
    fn is_opening(&self) -> bool {
        use penstock_tcp::State;
        self.current.is_some_and(|n| match &self.net.socks[n].kind {
            Kind::Tcp(end) => matches!(end.state(), State::SynReceived | State::SynSent),
            _ => false,
        })
    }

    /// The next segment of the connection under test that leaves until then.
    fn sniff(&mut self, limit: i64) -> Ran<Option<Left>> {
        loop {
            while let Some(left) = self.net.left.pop_front() {
                if (left.tcp.sport, left.tcp.dport) == self.map.ports || self.map.ports == (0, 0) {
                    return Ok(Some(left));
                }
            }
            match self.next_event() {
                Some(at) if us_since_begin(at) <= limit => self.net.step(at),
                _ => return Ok(None),
            }
            self.try_pending()?;
        }
    }

    /// In the script's numbers.
    fn mapped(&mut self, script: &Packet, left: &Left) -> Packet {
        let mut p = left.as_packet();
        if p.flags & TcpFlags::SYN.0 != 0 {
            self.map.local = script.seq.wrapping_sub(p.seq);
        }
        p.seq = p.seq.wrapping_add(self.map.local);
        if p.flags & TcpFlags::SYN.0 == 0 && p.flags & TcpFlags::ACK.0 != 0 {
            let remote = self.map.remote;
            p.ack = p.ack.wrapping_sub(remote);
            for option in p.options.iter_mut().flatten() {
                if let crate::script::TcpOption::Sack(blocks) = option {
                    for (left, right) in blocks {
                        (*left, *right) = (left.wrapping_sub(remote), right.wrapping_sub(remote));
                    }
                }
            }
        }
        let expected = script.options.iter().flatten().find_map(|o| match o {
            crate::script::TcpOption::Timestamps(val, _) => Some(*val),
            _ => None,
        });
        for option in p.options.iter_mut().flatten() {
            if let crate::script::TcpOption::Timestamps(val, _) = option {
                if let Some(expected) = expected {
                    self.map.stamps.get_or_insert(expected.wrapping_sub(*val));
                }
                *val = val.wrapping_add(self.map.stamps.unwrap_or(0));
            }
        }
        p
    }

    fn outbound(&mut self, event: &Event, script: &Packet, (from, to): (i64, i64), offset: i64) -> Ran {
        let any = event.when == When::Any;
        let limit =
            if any { self.net.script_us() + LONGEST_CALL } else { to.max(self.net.script_us()) + PATIENCE };
        let shown = |at: i64, p: &Packet| format!("{} {p}", secs(at));
        let dump = |message: String, actual: &[(i64, Packet)]| {
            let mut text =
                format!("error handling packet: {message}\nscript packet: {}", shown(from, script));
            for (at, p) in actual {
                text.push_str(&format!(
                    "\nactual packet: {}",
                    shown(*at, &Packet { tos: Tos::Any, ttl: None, ..p.clone() })
                ));
            }
            Failure { line: event.line, message: text }
        };
        let mut all: Vec<(i64, Packet)> = Vec::new();
        let mut bytes = 0;
        loop {
            let Some(left) = self.sniff(limit)? else {
                return Err(dump("Timed out waiting for packet".to_owned(), &all));
            };
            let at = us_since_begin(left.at);
            let p = self.mapped(script, &left);
            bytes += left.payload;
            if let Some((_, before)) = all.last() {
                // Pieces of what the script sees as one: they follow each other and are of one length, but for the last.
                let wrong = if p.seq != before.seq.wrapping_add(before.len) {
                    Some(format!(
                        "live packet field tcp_seq: expected: {} vs actual: {}",
                        before.seq.wrapping_add(before.len),
                        p.seq
                    ))
                } else if bytes < script.len && p.len != before.len {
                    Some(format!(
                        "fragment payload: expected {} bytes vs actual {} bytes; total payload: expected {} bytes vs actual {bytes} bytes",
                        before.len, p.len, script.len
                    ))
                } else {
                    let same = TcpFlags::SYN.0 | TcpFlags::RST.0 | TcpFlags::ACK.0 | TcpFlags::ECE.0;
                    ((p.flags ^ before.flags) & same != 0 || p.ack != before.ack)
                        .then(|| "fragments differ in their headers".to_owned())
                };
                if let Some(wrong) = wrong {
                    all.push((at, p));
                    return Err(dump(wrong, &all));
                }
            }
            all.push((at, p));
            if bytes >= script.len || self.set.strict {
                break;
            }
        }
        if bytes != script.len {
            return Err(dump(
                format!("live packet payload: expected {} bytes vs actual {bytes} bytes", script.len),
                &all,
            ));
        }
        // All of them as one: it begins with the first, and has the flags of all.
        let (first, last) = (all[0].clone(), all[all.len() - 1].1.clone());
        let at = first.0;
        let flags = last.flags | first.1.flags & TcpFlags::CWR.0;
        let whole = Packet { flags, len: bytes, ..first.1 };
        if let Some(wrong) = differs(script, &whole) {
            return Err(dump(wrong, &[(at, whole)]));
        }
        self.stamps(event, script, &whole).map_err(|wrong| dump(wrong, &[(at, whole.clone())]))?;
        let tolerance = self.tolerance(from);
        if !any && (at < from - tolerance || at > to + tolerance) {
            let tolerance = secs(tolerance);
            let wrong = match event.when {
                When::Between(..) => format!(
                    "timing error: expected outbound packet in time range {}~{} sec but happened at {} sec",
                    secs(from),
                    secs(to),
                    secs(at)
                ),
                When::Within(..) => format!(
                    "timing error: expected outbound packet in relative time range +{}~+{} sec but happened at +{} sec",
                    secs(from - offset),
                    secs(to - offset),
                    secs(at - offset)
                ),
                _ => format!(
                    "timing error: expected outbound packet at {} sec but happened at {} sec; tolerance {tolerance} sec",
                    secs(from),
                    secs(at)
                ),
            };
            return Err(dump(wrong, &[(at, whole)]));
        }
        if self.current.is_none() {
            let (local, remote) = self.map.ports;
            self.current =
                self.net.socks.iter().position(|s| {
                    matches!(s.kind, Kind::Tcp(_)) && s.local.1 == local && s.remote.1 == remote
                });
        }
        self.try_pending()
    }

    /// Whether the timestamps are near enough to the script's.
    fn stamps(&self, event: &Event, script: &Packet, actual: &Packet) -> Result<(), String> {
        let of = |p: &Packet| {
            p.options.iter().flatten().find_map(|o| match o {
                crate::script::TcpOption::Timestamps(val, ecr) => Some((*val, *ecr)),
                _ => None,
            })
        };
        let (Some((expected, ecr)), Some((is, echoed))) = (of(script), of(actual)) else { return Ok(()) };
        let since = match event.when {
            When::At(a) | When::Between(a, _) => a,
            _ => self.net.script_us(),
        };
        let tolerance = self.set.tolerance_us.max((self.set.tolerance_percent / 100.0 * since as f64) as i64);
        let apart = i64::from(is.wrapping_sub(expected) as i32).abs() * self.set.ts_tick_us;
        if self.set.ts_tick_us > 0 && apart > tolerance {
            return Err(format!("bad outbound TCP timestamp value, tolerance {tolerance}"));
        }
        let _ = (ecr, echoed);
        Ok(())
    }
}
