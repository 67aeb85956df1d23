//! Captures: the frames of cards, written while the run goes on.
//!
//! Each card writes the blocks of its frames into a file of its own beside the run folder to be; when the run folder is written they are put
//! together in the order of time. So memory does not grow with the run, and the bytes are the same on any number of threads.

use super::build::{Built, at};
use crate::experiment::Experiment;
use penstock_files::Scratch;
use penstock_measure::record;
use penstock_model::{Diagnostic, Handle, Span, Time};
use penstock_packet::Skb;
use penstock_replay::capture::{Direction, Seat, Writer, packet_block};
use penstock_sim::{Capture, Seen};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// A capture that was made.
pub struct Captured {
    /// Its name: the file is `captures/NAME.pcapng`.
    pub name: String,
    on: Vec<String>,
    snaplen: usize,
    parts: Vec<Arc<Mutex<Part>>>,
    /// Where those lie.
    _scratch: Arc<Scratch>,
}

/// The frames of one card.
struct Part {
    to: BufWriter<File>,
    packets: u64,
    lost: u64,
    failed: Option<io::Error>,
}

/// Writes the frames of one card.
struct Sink {
    part: Arc<Mutex<Part>>,
    /// The number of its interface; that of its lost packets follows.
    interface: u32,
    snaplen: usize,
    drops: bool,
    from: Time,
    until: Time,
    /// Rooms for a frame, its comment and its block.
    frame: Vec<u8>,
    comment: String,
    block: Vec<u8>,
}

fn locked(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// How many interfaces each card has in a file.
const INTERFACES: u32 = 2;

/// Begins all captures of an experiment.
pub(super) fn begin(experiment: &Experiment, built: &mut Built) -> Result<Vec<Captured>, Vec<Diagnostic>> {
    let mut all = Vec::new();
    if experiment.captures.is_empty() {
        return Ok(all);
    }
    if cfg!(target_family = "wasm") {
        let place = &experiment.captures[0].place;
        let message = "captures are written into files, and there are none in a browser".to_owned();
        let fault = at(experiment, place, message);
        return Err(vec![
            fault.help(
                "leave the capture out, or run the experiment with the installed program: penstock run",
            ),
        ]);
    }
    let parent = experiment.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let cannot = |e: io::Error| {
        let message = format!("cannot write captures in {}: {e}", parent.display());
        vec![Diagnostic::error(message).help("another place for the run: --out DIR")]
    };
    let scratch = fs::create_dir_all(&parent).and_then(|()| Scratch::new(&parent)).map_err(cannot)?;
    let scratch = Arc::new(scratch);
    for (capture, n) in experiment.captures.iter().zip(0..) {
        let mut parts = Vec::new();
        for (end, card) in capture.on.iter().zip(0u32..) {
            let file = scratch.path().join(format!("{n}-{card}"));
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(file);
            let to = BufWriter::with_capacity(1 << 16, file.map_err(cannot)?);
            let part = Arc::new(Mutex::new(Part { to, packets: 0, lost: 0, failed: None }));
            let time = |span: Span| Time::from_ns(span.as_ns());
            let sink = Sink {
                part: part.clone(),
                interface: card * INTERFACES,
                snaplen: capture.snaplen,
                drops: capture.drops,
                from: time(capture.from),
                until: capture.until.map_or(Time::MAX, time),
                frame: Vec::new(),
                comment: String::new(),
                block: Vec::new(),
            };
            let host = built.id(&end.host);
            if !built.world.capture(host, &end.dev, Box::new(sink)) {
                let message =
                    format!("{}:{} is no card at a link: there is nothing to capture", end.host, end.dev);
                return Err(vec![at(experiment, &end.place, message)]);
            }
            parts.push(part);
        }
        all.push(Captured {
            name: capture.name.clone(),
            on: capture.on.iter().map(|e| format!("{}:{}", e.host, e.dev)).collect(),
            snaplen: capture.snaplen,
            parts,
            _scratch: scratch.clone(),
        });
    }
    Ok(all)
}

/// Ends them: what could not be written is told.
pub(super) fn end(captures: Vec<Captured>) -> Result<Vec<Captured>, Vec<Diagnostic>> {
    for capture in &captures {
        for part in &capture.parts {
            let mut part = locked(part);
            let done = match part.failed.take() {
                Some(e) => Err(e),
                None => part.to.flush(),
            };
            if let Err(e) = done {
                return Err(vec![Diagnostic::error(format!(
                    "cannot write the capture {}: {e}",
                    capture.name
                ))]);
            }
        }
    }
    Ok(captures)
}

impl Capture for Sink {
    fn frame(&mut self, at: Time, seen: Seen<'_>, skb: &Skb) {
        if at < self.from || at >= self.until || !self.drops && matches!(seen, Seen::Lost { .. }) {
            return;
        }
        let (mut interface, mut direction) = (self.interface, Direction::Out);
        self.comment.clear();
        let said = &mut self.comment;
        // Writing into a text does not fail.
        let _ = match seen {
            Seen::Received => {
                direction = Direction::In;
                Ok(())
            }
            Seen::Sent { class, queue, waited } => {
                in_queue(class, queue, said);
                write!(said, "waited {waited}")
            }
            Seen::Lost { place, reason, class, queue } => {
                interface += 1;
                if matches!(place, "ingress" | "bridge" | "cpu") {
                    direction = Direction::In;
                }
                let _ = write!(said, "lost ({place}): {reason}, ");
                in_queue(class, queue, said);
                said.truncate(said.trim_end_matches([',', ' ']).len());
                Ok(())
            }
        };
        self.frame.clear();
        let whole = skb.frame_bytes(self.snaplen, &mut self.frame);
        self.block.clear();
        let time = at.as_ns().max(0) as u64;
        packet_block(&mut self.block, interface, time, &self.frame, whole as u32, direction, &self.comment);
        let mut part = locked(&self.part);
        match interface == self.interface {
            true => part.packets += 1,
            false => part.lost += 1,
        }
        if part.failed.is_none()
            && let Err(e) = part.to.write_all(&self.block)
        {
            part.failed = Some(e);
        }
    }
}

/// `class 1:10, queue fq_codel 10:, `.
fn in_queue(class: Handle, queue: &str, said: &mut String) {
    if class.minor() != 0 && class != Handle::ROOT {
        let _ = write!(said, "class {class}, ");
    }
    if !queue.is_empty() {
        let _ = write!(said, "queue {queue}, ");
    }
}

impl Captured {
    /// As the record has it.
    pub(super) fn recorded(&self) -> record::Capture {
        let sum = |of: fn(&Part) -> u64| self.parts.iter().map(|part| of(&locked(part))).sum();
        record::Capture {
            file: format!("captures/{}.pcapng", self.name),
            on: self.on.clone(),
            packets: sum(|p| p.packets),
            lost_packets: sum(|p| p.lost),
        }
    }
    /// Writes the file: all cards' frames in the order of time; of one moment, in the order of the cards.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(format!("{}.pcapng", self.name));
        let mut to = Writer::begin(
            BufWriter::new(File::create(path)?),
            concat!("penstock ", env!("CARGO_PKG_VERSION")),
        )?;
        for on in &self.on {
            let snaplen = self.snaplen as u32;
            let text = format!("frames that {on} sends and receives, as its card sees them");
            to.interface(&Seat { name: on, description: &text, snaplen })?;
            let (name, text) = (format!("{on} lost"), format!("packets that are lost at {on}"));
            to.interface(&Seat { name: &name, description: &text, snaplen })?;
        }
        let mut parts = Vec::new();
        for part in &self.parts {
            let mut part = locked(part);
            part.to.flush()?;
            part.to.get_mut().rewind()?;
            let file = part.to.get_ref().try_clone()?;
            let mut part = Blocks { from: BufReader::new(file), block: Vec::new(), time: None };
            part.next()?;
            parts.push(part);
        }
        loop {
            let first = parts.iter().enumerate().filter_map(|(n, p)| Some((p.time?, n))).min();
            let Some((_, n)) = first else { break };
            to.raw(&parts[n].block)?;
            parts[n].next()?;
        }
        to.finish()
    }
}

/// The blocks of one card, one after another.
struct Blocks {
    from: BufReader<File>,
    block: Vec<u8>,
    /// The time of the block at hand; none where there is none any more.
    time: Option<u64>,
}

impl Blocks {
    fn next(&mut self) -> io::Result<()> {
        self.block.resize(8, 0);
        self.time = None;
        let mut got = 0;
        while got < 8 {
            match self.from.read(&mut self.block[got..])? {
                0 if got == 0 => return Ok(()),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => got += n,
            }
        }
        let word = |block: &[u8], at: usize| {
            block.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
        };
        let len = word(&self.block, 4) as usize;
        self.block.resize(len.max(8), 0);
        self.from.read_exact(&mut self.block[8..])?;
        self.time = Some(u64::from(word(&self.block, 12)) << 32 | u64::from(word(&self.block, 16)));
        Ok(())
    }
}
