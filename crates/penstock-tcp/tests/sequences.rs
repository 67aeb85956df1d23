//! Sequences of segments and what the RFCs want of them: scripts in `tests/sequences/*.seq`.
//!
//! A case is `== RFC N section S: what it shows | options`, then a line a step. Numbers count from the SYN, which is 0: the first byte is 1.
//!
//! Steps of the program: `write N`, `close`, `abort`, `read N` (without it everything is read at once; option `noread`).
//! Time: `+100ms`. Segments of the other side: `a N` acknowledges (`sack L-R`, `win W`, `ece`, `old`), `d S:E` brings data (`a N`, `fin`, `ce`, `cwr`, `psh`,
//! `old`), `rst N`, `syn` and `synack`. What is sent: `> S:E` data (several full segments in a run; `fin`, `cwr`, `ect`, `noect`, `rtx`), `> ack N`
//! (`sack L-R`, `ece`, `win W`, `dsack L-R` for the first block), `> syn`, `> synack`, `> rst`, `> probe`; `none`: nothing; `in 200ms..260ms > …`: next, after that time.
//! What is known: `cwnd N`, `ssthresh N`, `state open`, `error reset`, `rto 300ms`.
//! Options: `cc=cubic`, `sack=off`, `ts=on`, `ecn=on`, `iw=3`, `win=4000`, `scale=on`, `rcvbuf=N`, `nodelay`, `raw` (no handshake yet), `listen`, `old` (2.6.35).

use penstock_model::{Kernel, Span, Time};
use penstock_packet::{Tcp, TcpFlags};
use penstock_tcp::{Config, Ecn, EcnField, Endpoint, State, Transmit};
use std::collections::VecDeque;

const ISS: u32 = 1_000_000;
const IRS: u32 = 5_000_000;
const MSS: u32 = 1_000;
const RTT: Span = Span::from_ms(100);

struct Run {
    cfg: Config,
    end: Option<Endpoint>,
    now: Time,
    sent: VecDeque<(Time, Transmit)>,
    /// The other side's window, its next number, and what it has acknowledged.
    window: u16,
    next: u32,
    acked: u32,
    ts: bool,
    reads: bool,
    last_tsval: u32,
}

fn flags(names: &[TcpFlags]) -> TcpFlags {
    names.iter().fold(TcpFlags::default(), |all, &f| all.with(f))
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a number"))
}
fn span(text: &str) -> Result<Span, String> {
    let (n, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(n), _) => (n, 1_000_000),
        (None, Some(n)) => (n, 1_000_000_000),
        _ => return Err(format!("\"{text}\" is not a duration")),
    };
    Ok(Span::from_ns(i64::from(number(n)?) * unit))
}
fn pair(text: &str, by: char) -> Result<(u32, u32), String> {
    let (a, b) = text.split_once(by).ok_or(format!("\"{text}\" is not a range"))?;
    Ok((number(a)?, number(b)?))
}

impl Run {
    fn new(options: &str) -> Result<Run, String> {
        let kernel =
            if options.split_whitespace().any(|o| o == "old") { Kernel::V2_6_35 } else { Kernel::V6_12 };
        let mut cfg = Config::linux(kernel);
        cfg.hz = 1_000;
        (cfg.mss, cfg.timestamps, cfg.window_scaling) = (MSS as u16, false, false);
        cfg.set_cc("reno")?;
        let (mut window, mut raw, mut listen, mut reads) = (65_535, false, false, true);
        for option in options.split_whitespace() {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            match key {
                "cc" => cfg.set_cc(value)?,
                "sack" => cfg.sack = value == "on",
                "ts" => (cfg.timestamps, cfg.mss) = (value == "on", MSS as u16 + 12),
                "ecn" => cfg.ecn = if value == "on" { Ecn::On } else { Ecn::Off },
                "iw" => cfg.initial_window = number(value)?,
                "win" => window = number(value)? as u16,
                "scale" => cfg.window_scaling = value == "on",
                "rcvbuf" => cfg.set_rcvbuf(number(value)?),
                "nodelay" => cfg.nodelay = true,
                "raw" => raw = true,
                "listen" => listen = true,
                "noread" => reads = false,
                "old" => {}
                _ => return Err(format!("option {option}")),
            }
        }
        let now = Time::ZERO + Span::from_secs(10);
        let ts = cfg.timestamps;
        let mut run = Run {
            cfg,
            end: None,
            now,
            sent: VecDeque::new(),
            window,
            next: 1,
            acked: 1,
            ts,
            reads,
            last_tsval: 0,
        };
        if listen {
            return Ok(run);
        }
        run.end = Some(Endpoint::connect(&run.cfg, 1000, 2000, ISS, run.now));
        run.poll();
        if !raw {
            run.sent.clear();
            run.now += RTT;
            run.synack("");
            // The first segment after the SYN-ACK brings a window, and is not a duplicate.
            run.step("a 1")?;
            run.sent.clear();
        }
        Ok(run)
    }

    fn poll(&mut self) {
        loop {
            let Some(e) = self.end.as_mut() else { return };
            let mut moved = false;
            while let Some(t) = e.poll_transmit(self.now) {
                self.last_tsval = t.tcp.timestamps.map_or(self.last_tsval, |v| v.0);
                self.sent.push_back((self.now, t));
                moved = true;
            }
            if self.reads && e.readable() > 0 {
                e.read(u64::MAX, self.now);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    fn give(&mut self, mut tcp: Tcp, len: u32, ce: bool, old: bool) {
        (tcp.sport, tcp.dport) = (2000, 1000);
        if self.ts {
            let ms = (self.now.as_ns() / 1_000_000) as u32;
            tcp.timestamps = Some((if old { ms.wrapping_sub(5_000) } else { ms }, self.last_tsval));
        }
        match self.end.as_mut() {
            Some(e) => e.handle_segment(&tcp, len, if ce { EcnField::Ce } else { EcnField::Ect0 }, self.now),
            None => self.end = Endpoint::accept(&self.cfg, &tcp, ISS, self.now),
        }
        self.poll();
    }

    fn synack(&mut self, words: &str) {
        let mut tcp = Tcp {
            seq: IRS,
            ack: ISS + 1,
            flags: flags(&[TcpFlags::SYN, TcpFlags::ACK]),
            window: self.window,
            mss: Some(self.cfg.mss),
            sack_permitted: self.cfg.sack,
            wscale: self.cfg.window_scaling.then_some(7),
            ..Tcp::default()
        };
        if self.cfg.ecn == Ecn::On && !words.contains("noecn") {
            tcp.flags = tcp.flags.with(TcpFlags::ECE);
        }
        self.give(tcp, 0, false, false);
    }

    /// A step; an error says what was otherwise.
    fn step(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let arg = |n: usize| words.get(n).copied().ok_or(format!("{line}: a word is missing"));
        if let Some(time) = line.strip_prefix('+') {
            return self.advance(span(time)?);
        }
        match words[0] {
            "write" => {
                let n = number(arg(1)?)?;
                self.end.as_mut().ok_or("no socket")?.write(u64::from(n), self.now);
            }
            "read" => {
                let n = number(arg(1)?)?;
                self.end.as_mut().ok_or("no socket")?.read(u64::from(n), self.now);
            }
            "close" => self.end.as_mut().ok_or("no socket")?.close(self.now),
            "abort" => self.end.as_mut().ok_or("no socket")?.abort(self.now),
            "a" | "d" | "rst" | "syn" | "synack" => return self.other_side(line, &words),
            ">" => return self.expect(&words[1..], None),
            "in" => {
                let (least, most) = arg(1)?.split_once("..").ok_or("in 1ms..2ms")?;
                return self.expect(&words[3..], Some((span(least)?, span(most)?)));
            }
            "none" => {
                return match self.sent.front() {
                    None => Ok(()),
                    Some(x) => Err(format!("{} is sent", show(&x.1))),
                };
            }
            "cwnd" | "ssthresh" | "state" | "rto" | "error" => {
                let e = self.end.as_ref().ok_or("no socket")?;
                let info = e.info();
                let seen = match words[0] {
                    "cwnd" => info.cwnd.to_string(),
                    "ssthresh" => info.ssthresh.to_string(),
                    "rto" => format!("{}ms", info.rto.as_ns() / 1_000_000),
                    "error" => e.error().map_or("none".to_owned(), |x| format!("{x:?}").to_lowercase()),
                    _ if e.state() != State::Established => format!("{:?}", e.state()).to_lowercase(),
                    _ => format!("{:?}", info.ca_state).to_lowercase(),
                };
                return if seen == arg(1)? { Ok(()) } else { Err(format!("{} is {seen}", words[0])) };
            }
            _ => return Err("no such step".to_owned()),
        }
        self.poll();
        Ok(())
    }

    fn other_side(&mut self, line: &str, words: &[&str]) -> Result<(), String> {
        let has = |word: &str| words.contains(&word);
        let after =
            |word: &str| words.iter().position(|w| *w == word).and_then(|i| words.get(i + 1)).copied();
        let mut tcp = Tcp { flags: TcpFlags::ACK, window: self.window, ..Tcp::default() };
        if let Some(w) = after("win") {
            self.window = number(w)? as u16;
            tcp.window = self.window;
        }
        for (i, w) in words.iter().enumerate() {
            if *w == "sack" {
                let (l, r) = pair(words.get(i + 1).ok_or("sack L-R")?, '-')?;
                tcp.sack[usize::from(tcp.sack_count)] = (ISS + l, ISS + r);
                tcp.sack_count += 1;
            }
        }
        for (word, flag) in
            [("ece", TcpFlags::ECE), ("cwr", TcpFlags::CWR), ("fin", TcpFlags::FIN), ("psh", TcpFlags::PSH)]
        {
            if has(word) {
                tcp.flags = tcp.flags.with(flag);
            }
        }
        let (mut len, mut seq) = (0, self.next);
        match words[0] {
            "a" => self.acked = number(words.get(1).ok_or("a N")?)?,
            "d" => {
                let (start, end) = pair(words.get(1).ok_or("d S:E")?, ':')?;
                (len, seq) = (end - start, start);
                self.next = self.next.max(end + u32::from(has("fin")));
                if let Some(n) = after("a") {
                    self.acked = number(n)?;
                }
            }
            "rst" => {
                tcp.flags = flags(&[TcpFlags::RST, TcpFlags::ACK]);
                seq = number(words.get(1).ok_or("rst N")?)?;
            }
            "syn" => {
                tcp.flags = TcpFlags::SYN;
                if has("ecn") {
                    tcp.flags = flags(&[TcpFlags::SYN, TcpFlags::ECE, TcpFlags::CWR]);
                }
                (tcp.mss, tcp.sack_permitted, tcp.seq) = (Some(MSS as u16), self.cfg.sack, IRS);
                self.give(tcp, 0, false, false);
                return Ok(());
            }
            _ => {
                self.synack(line);
                return Ok(());
            }
        }
        (tcp.seq, tcp.ack) = (IRS + seq, ISS + self.acked);
        self.give(tcp, len, has("ce"), has("old"));
        Ok(())
    }

    /// Time goes on, as far as nothing is sent that was not asked for.
    fn advance(&mut self, by: Span) -> Result<(), String> {
        if let Some(x) = self.sent.front() {
            return Err(format!("{} is sent", show(&x.1)));
        }
        let until = self.now + by;
        while let Some(t) = self.end.as_ref().and_then(Endpoint::poll_timeout).filter(|t| *t <= until) {
            self.now = t.max(self.now);
            self.end.as_mut().unwrap().handle_timeout(self.now);
            self.poll();
            if let Some(x) = self.sent.front() {
                let late = (self.now - (until - by)).as_ns() / 1_000_000;
                return Err(format!("{} is sent after {late} ms", show(&x.1)));
            }
        }
        self.now = until;
        Ok(())
    }

    fn expect(&mut self, words: &[&str], within: Option<(Span, Span)>) -> Result<(), String> {
        let begun = self.now;
        if let Some((_, most)) = within {
            if let Some(x) = self.sent.front() {
                return Err(format!("{} is sent at once", show(&x.1)));
            }
            while self.sent.is_empty() {
                let next = self.end.as_ref().and_then(Endpoint::poll_timeout).filter(|t| *t <= begun + most);
                self.now = next.ok_or(format!("nothing is sent within {} ms", most.as_ns() / 1_000_000))?;
                self.end.as_mut().unwrap().handle_timeout(self.now);
                self.poll();
            }
        }
        let first = self.sent.front().ok_or("nothing is sent")?;
        let took = first.0 - begun;
        if within.is_some_and(|w| took < w.0) {
            return Err(format!("{} is sent after {} ms", show(&first.1), took.as_ns() / 1_000_000));
        }
        match words[0] {
            "syn" | "synack" | "rst" | "ack" | "probe" => self.expect_bare(words),
            range => self.expect_data(range, words),
        }
    }

    fn expect_bare(&mut self, words: &[&str]) -> Result<(), String> {
        let (_, t) = self.sent.pop_front().unwrap();
        let f = t.tcp.flags;
        let wrong = || Err(format!("{} is sent", show(&t)));
        let kind = match words[0] {
            "syn" => f.has(TcpFlags::SYN) && !f.has(TcpFlags::ACK),
            "synack" => f.has(TcpFlags::SYN) && f.has(TcpFlags::ACK),
            "rst" => f.has(TcpFlags::RST),
            "probe" => t.payload_len == 0 && t.tcp.seq == ISS + self.acked - 1,
            _ => {
                t.payload_len == 0
                    && f == flags(&[TcpFlags::ACK]).with_if(TcpFlags::ECE, f.has(TcpFlags::ECE))
            }
        };
        if !kind {
            return wrong();
        }
        if words[0] == "ack" && t.tcp.ack != IRS + number(words.get(1).ok_or("ack N")?)? {
            return wrong();
        }
        let want: Result<Vec<(u32, u32)>, String> = words
            .iter()
            .zip(words.iter().skip(1))
            .filter(|(w, _)| **w == "sack" || **w == "dsack")
            .map(|(_, r)| pair(r, '-').map(|(l, r)| (IRS + l, IRS + r)))
            .collect();
        if words[0] == "ack" && t.tcp.sack_blocks() != want? {
            return wrong();
        }
        if let Some(i) = words.iter().position(|w| *w == "win")
            && u32::from(t.tcp.window) != number(words.get(i + 1).ok_or("win W")?)?
        {
            return wrong();
        }
        for (word, is) in [("ece", f.has(TcpFlags::ECE)), ("cwr", f.has(TcpFlags::CWR)), ("ect", t.ect)] {
            if words.contains(&word) != is && (words[0] == "ack" || words.contains(&word)) {
                return wrong();
            }
        }
        Ok(())
    }

    fn expect_data(&mut self, range: &str, words: &[&str]) -> Result<(), String> {
        let (start, end) = pair(range, ':')?;
        let mut at = start;
        loop {
            let Some((_, t)) = self.sent.pop_front() else {
                return Err(format!("from {at} on nothing is sent"));
            };
            let fin = t.tcp.flags.has(TcpFlags::FIN);
            let last = t.tcp.seq.wrapping_sub(ISS) + t.payload_len;
            let runs = t.tcp.seq == ISS + at && last <= end && (t.payload_len > 0 || fin);
            let marks = [("cwr", t.tcp.flags.has(TcpFlags::CWR)), ("rtx", t.retransmission), ("ect", t.ect)];
            let wrong =
                marks.iter().any(|m| words.contains(&m.0) && !m.1) || words.contains(&"noect") && t.ect;
            let spare = words.contains(&"nocwr") && t.tcp.flags.has(TcpFlags::CWR);
            let fin_wrong = last == end && fin != words.contains(&"fin");
            if !runs || wrong || spare || fin_wrong {
                return Err(format!("{} is sent", show(&t)));
            }
            at = last;
            if at == end {
                return Ok(());
            }
        }
    }
}

trait WithIf {
    fn with_if(self, flag: TcpFlags, on: bool) -> Self;
}
impl WithIf for TcpFlags {
    fn with_if(self, flag: TcpFlags, on: bool) -> TcpFlags {
        if on { self.with(flag) } else { self }
    }
}

fn show(t: &Transmit) -> String {
    let start = t.tcp.seq.wrapping_sub(ISS);
    let sacks: Vec<(u32, u32)> =
        t.tcp.sack_blocks().iter().map(|b| (b.0.wrapping_sub(IRS), b.1.wrapping_sub(IRS))).collect();
    let ack = t.tcp.ack.wrapping_sub(IRS);
    let again = if t.retransmission { " again" } else { "" };
    let ect = if t.ect { " ect" } else { "" };
    format!(
        "{start}:{}{again}{ect} ack {ack} sack {sacks:?} flags {:#x} win {}",
        start + t.payload_len,
        t.tcp.flags.0,
        t.tcp.window
    )
}

#[test]
fn sequences_go_as_the_rfcs_want() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sequences");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let (mut cases, mut faults) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut run: Option<Run> = None;
        let mut name = "";
        for (n, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or(line).trim();
            if let Some(head) = line.strip_prefix("== ") {
                let (title, options) = head.split_once('|').unwrap_or((head, ""));
                name = title.trim();
                assert!(
                    name.starts_with("RFC ") && name.contains("section"),
                    "{name}: which RFC, which section?"
                );
                cases += 1;
                run = Some(Run::new(options).unwrap_or_else(|e| panic!("{name}: {e}")));
            } else if !line.is_empty()
                && !line.starts_with('#')
                && let Some(r) = run.as_mut()
                && let Err(fault) = r.step(line)
            {
                let file = file.file_name().unwrap().to_string_lossy();
                faults.push(format!("{file}:{}: {name}\n    {line}: {fault}", n + 1));
                run = None;
            }
        }
    }
    println!("{cases} cases");
    assert!(faults.is_empty(), "{} of {cases} cases:\n{}", faults.len(), faults.join("\n"));
    assert!(cases >= 150, "{cases} cases");
}
