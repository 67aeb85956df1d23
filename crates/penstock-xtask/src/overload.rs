//! `cargo xtask overload`: wild inputs run whole, for as long as one has time.
//!
//! A seed gives an input of each kind (`penstock-wild`). Cases run in a process of their own, which is given one after the other: one that
//! does not end, eats memory or aborts is reported with its seed and its file, and the campaign goes on in the next process.
//!
//! Asked of every case: no panic, an end within the time and the memory, the same bytes when it is run again on another thread, and
//! while another case runs beside it. Of experiments also that the run accounts for every packet (that is the run's own doing, and its
//! complaint is a find), and that the replay engine does the same with what came to each device it can be compared with
//! (`penstock_lab::beside`). Of networks that one run on several cores can divide, that two, three and eight threads give the bytes of one.

use anyhow::{Context, Result, bail};
use penstock_check as check;
use penstock_lab::beside::beside;
use penstock_lab::experiment::Threads;
use penstock_lab::run::{Options, Outcome};
use penstock_lab::{Experiment, experiment};
use penstock_measure::Series;
use penstock_measure::record::Record;
use penstock_measure::report::{Page, html};
use penstock_model::{Diagnostic, Kernel};
use penstock_shell::Script;
use penstock_wild::{self as wild, Unstructured};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is made of a seed.
const KINDS: [&str; 7] = ["experiment", "threads", "bash", "python", "spec", "capture", "record"];

/// How much, how long, and where what is found goes.
#[derive(clap::Args)]
pub struct Args {
    /// experiment, threads (networks, each by one, two, three and eight threads), bash, python, spec, capture, record; all without one
    kinds: Vec<String>,
    /// The first and the last seed
    #[arg(long, default_value = "1..10000")]
    seeds: String,
    /// End after so long, even where seeds are left
    #[arg(long)]
    minutes: Option<u64>,
    /// Longest a case may take, seconds of the processor's time (of wall clock, 20 times as many)
    #[arg(long, default_value_t = 30)]
    case_seconds: u64,
    /// Most address space a process may have
    #[arg(long, default_value_t = 3072)]
    memory_mb: u64,
    /// Processes at a time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder for what is found: `KIND-SEED.EXT` and `KIND-SEED.txt`, what was wrong
    #[arg(long, default_value = "target/found")]
    keep: PathBuf,
    /// Print the input of the first seed, and nothing else
    #[arg(long)]
    print: bool,
    /// Be the process that runs what it reads
    #[arg(long, hide = true)]
    worker: bool,
}

/// Seeds of the gate's campaign: about two minutes of one processor.
pub const GATE_SEEDS: u64 = 150;

impl Args {
    /// A campaign of a gate: always the same cases.
    pub fn gate(seeds: u64) -> Args {
        let jobs = penstock_lab::many::processors();
        let fresh = Args::fresh(1, jobs, &crate::tidy::root().join("target/found"));
        Args { seeds: format!("1..{seeds}"), ..fresh }
    }
    /// A campaign that begins at a seed and has no end of its own.
    pub fn fresh(first: u64, jobs: usize, keep: &std::path::Path) -> Args {
        Args {
            kinds: Vec::new(),
            seeds: format!("{first}..{}", u64::MAX - 1),
            minutes: None,
            case_seconds: 60,
            memory_mb: 3072,
            jobs,
            keep: keep.to_owned(),
            print: false,
            worker: false,
        }
    }
}

/// What came of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    /// It ran, and nothing was wrong.
    Ran,
    /// So did an experiment of which so many devices with so many packets were replayed.
    Replayed(u64, u64),
    /// It was refused, in these words.
    Refused(String),
    /// A fault of ours.
    Found(String),
}

/// Runs the campaign, and says what came of it.
///
/// # Errors
/// Something was found, or a process cannot be started.
pub fn run(args: &Args) -> Result<()> {
    if args.worker {
        return work();
    }
    let end = args.minutes.map(|m| Instant::now() + Duration::from_secs(m * 60));
    let text = campaign(args, end)?;
    if !args.print {
        println!("overload: {text}");
    }
    Ok(())
}

/// Runs the campaign until `end`, or until its seeds are over; answers what came of it.
///
/// # Errors
/// As [`run`].
pub fn campaign(args: &Args, end: Option<Instant>) -> Result<String> {
    let kinds = match args.kinds.is_empty() {
        true => KINDS.to_vec(),
        false => args.kinds.iter().map(|k| known(k)).collect::<Result<_>>()?,
    };
    let (first, last) = args.seeds.split_once("..").context("--seeds FIRST..LAST")?;
    let (first, last): (u64, u64) = (first.parse().context("--seeds")?, last.parse().context("--seeds")?);
    if args.print {
        for kind in kinds {
            std::io::stdout().write_all(&input(kind, first)?)?;
        }
        return Ok("printed".to_owned());
    }
    let started = Instant::now();
    let cases = (first..=last).flat_map(|seed| kinds.iter().map(move |&kind| (kind, seed)));
    let cases = Mutex::new(cases.take_while(|_| end.is_none_or(|end| Instant::now() < end)));
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        let each = || -> Result<()> {
            let mut worker = None;
            loop {
                let next = cases.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((kind, seed)) = next else { return Ok(()) };
                let verdict = ask(&mut worker, args, kind, seed)?;
                tally.lock().unwrap_or_else(PoisonError::into_inner).enter(args, kind, seed, verdict)?;
            }
        };
        let workers: Vec<_> = (0..args.jobs.max(1)).map(|_| scope.spawn(each)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|_| bail!("a thread panicked")))
    })?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = started.elapsed().as_secs_f64();
    let mut text = format!("{} in {seconds:.0} s", tally.line());
    for (why, n) in tally.refusals() {
        text += &format!("\n  refused {n}: {why}");
    }
    if tally.found > 0 {
        bail!("{text}\n{} found; they are in {}", tally.found, args.keep.display());
    }
    Ok(text)
}

fn known(kind: &str) -> Result<&'static str> {
    KINDS
        .into_iter()
        .find(|k| *k == kind)
        .with_context(|| format!("{kind:?} is none of {}", KINDS.join(", ")))
}

/// Counts by kind: ran, refused; and what refusals said.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, (u64, u64)>,
    words: BTreeMap<String, u64>,
    cases: u64,
    found: u64,
    /// Experiments of which some device with packets was replayed, these devices, their packets.
    replayed: (u64, u64, u64),
}

impl Tally {
    fn enter(&mut self, args: &Args, kind: &'static str, seed: u64, verdict: Verdict) -> Result<()> {
        let counts = self.counts.entry(kind).or_default();
        self.cases += 1;
        match verdict {
            Verdict::Ran => counts.0 += 1,
            Verdict::Replayed(devices, packets) => {
                counts.0 += 1;
                self.replayed.0 += 1;
                self.replayed.1 += devices;
                self.replayed.2 += packets;
            }
            Verdict::Refused(why) => {
                counts.1 += 1;
                *self.words.entry(format!("{kind}: {why}")).or_default() += 1;
            }
            Verdict::Found(what) => {
                self.found += 1;
                std::fs::create_dir_all(&args.keep)?;
                let ending = match kind {
                    "experiment" | "threads" => "toml",
                    "bash" => "sh",
                    "python" => "py",
                    "capture" => "pcap",
                    _ => "json",
                };
                let path = args.keep.join(format!("{kind}-{seed}.{ending}"));
                std::fs::write(&path, input(kind, seed)?)?;
                std::fs::write(path.with_extension("txt"), format!("{what}\n"))?;
                println!(
                    "{} (cargo xtask overload {kind} --seeds {seed}..{seed})\n    {}",
                    path.display(),
                    what.lines().next().unwrap_or_default()
                );
            }
        }
        if self.cases.is_multiple_of(1000) {
            eprintln!("overload: {}", self.line());
        }
        Ok(())
    }
    fn line(&self) -> String {
        let each =
            self.counts.iter().map(|(kind, (ran, refused))| format!("{kind} {ran} ran, {refused} refused"));
        let each = each.collect::<Vec<_>>().join("; ");
        let (cases, devices, packets) = self.replayed;
        format!(
            "{} cases, {} found; {each}; replayed {devices} devices of {cases} experiments, {packets} packets",
            self.cases, self.found
        )
    }
    /// The most frequent refusals.
    fn refusals(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<(&str, u64)> = self.words.iter().map(|(why, &n)| (why.as_str(), n)).collect();
        all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        all.truncate(8);
        all
    }
}

/// A process that runs cases.
struct Worker {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Worker {
    fn new(memory_mb: u64) -> Result<Worker> {
        // The limit is the shell's to set: it stands before the process begins.
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -v \"$1\"; exec \"$0\" overload --worker"])
            .arg(std::env::current_exe()?)
            .arg((memory_mb * 1024).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("a process for the cases")?;
        let requests = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let (send, answers) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Ok(Worker { child, requests, answers })
    }
    /// The next answer, or that none comes: after so many seconds of the processor's time, or 20 times as many on the clock. Other
    /// work on the machine makes no fault of a case; a case that sleeps for ever is one.
    fn waits(&self, seconds: u64) -> std::result::Result<String, RecvTimeoutError> {
        let begun = cpu_seconds(self.child.id());
        let mut answer = Err(RecvTimeoutError::Timeout);
        for _ in 0..20 {
            answer = self.answers.recv_timeout(Duration::from_secs(seconds));
            let used = cpu_seconds(self.child.id()).zip(begun).map(|(now, begun)| now - begun);
            let busy_elsewhere = used.is_some_and(|used| used < seconds as f64);
            if answer != Err(RecvTimeoutError::Timeout) || !busy_elsewhere {
                break;
            }
        }
        answer
    }
}

/// Seconds of the processor's time that a process has had, in user and kernel mode: proc(5), fields 14 and 15 of `stat`, in ticks of
/// 10 ms. `None` where there is no such file.
fn cpu_seconds(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold spaces.
    let (_, behind) = stat.rsplit_once(") ")?;
    let mut fields = behind.split(' ').skip(11).map_while(|f| f.parse::<f64>().ok());
    Some((fields.next()? + fields.next()?) / 100.0)
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has a case run, in a new process where there is none.
fn ask(worker: &mut Option<Worker>, args: &Args, kind: &str, seed: u64) -> Result<Verdict> {
    let mut at_work = match worker.take() {
        Some(worker) => worker,
        None => Worker::new(args.memory_mb)?,
    };
    let sent = writeln!(at_work.requests, "{kind} {seed}").and_then(|()| at_work.requests.flush());
    let answer = at_work.waits(args.case_seconds);
    Ok(match answer {
        Ok(line) if sent.is_ok() => {
            *worker = Some(at_work);
            let line = line.replace('\u{1}', "\n");
            match line.split_once(' ').unwrap_or((&line, "")) {
                ("ran", _) => Verdict::Ran,
                ("replayed", counts) => match counts.split_once(' ').map(|(d, p)| (d.parse(), p.parse())) {
                    Some((Ok(devices), Ok(packets))) => Verdict::Replayed(devices, packets),
                    _ => Verdict::Found(line.clone()),
                },
                ("refused", why) => Verdict::Refused(why.to_owned()),
                (_, what) => Verdict::Found(what.to_owned()),
            }
        }
        Err(RecvTimeoutError::Timeout) => {
            Verdict::Found(format!("no end within {} s of the processor", args.case_seconds))
        }
        _ => {
            let status = at_work.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
            Verdict::Found(format!("the process ended: {status}"))
        }
    })
}

/// Runs what standard input names, until it ends.
fn work() -> Result<()> {
    // A panic's words are the answer, not noise.
    let said = std::sync::Arc::new(Mutex::new(String::new()));
    let hook = said.clone();
    std::panic::set_hook(Box::new(move |info| {
        let mut said = hook.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() {
            *said = info.to_string();
        }
    }));
    for line in std::io::stdin().lines() {
        let line = line?;
        let (kind, seed) = line.split_once(' ').context("KIND SEED")?;
        let (kind, seed) = (known(kind)?, seed.parse()?);
        said.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let verdict = std::panic::catch_unwind(|| case(kind, seed)).unwrap_or_else(|_| {
            let said = said.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(Verdict::Found(format!("panic: {said}")))
        })?;
        let text = match verdict {
            Verdict::Ran => "ran".to_owned(),
            Verdict::Replayed(devices, packets) => format!("replayed {devices} {packets}"),
            Verdict::Refused(why) => format!("refused {}", why.lines().next().unwrap_or_default()),
            Verdict::Found(what) => format!("found {what}"),
        };
        println!("{}", text.replace('\n', "\u{1}"));
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// The input of a kind that a seed gives.
fn input(kind: &str, seed: u64) -> Result<Vec<u8>> {
    let data = wild::bytes(seed, 8192);
    let mut u = Unstructured::new(&data);
    let u = &mut u;
    let made = match kind {
        "experiment" => wild::experiment(u).map(String::into_bytes),
        "threads" => wild::network(u).map(String::into_bytes),
        "bash" => wild::bash(u).map(String::into_bytes),
        "python" => wild::python(u).map(String::into_bytes),
        "spec" => wild::spec(u).map(String::into_bytes),
        "capture" => wild::capture(u),
        _ => wild::record(u, &base_record()?).map(String::into_bytes),
    };
    made.map_err(|e| anyhow::anyhow!("{kind} {seed}: {e}"))
}

/// A record to be changed: that of the least run.
fn base_record() -> Result<String> {
    let text = "duration = \"100ms\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = \"tc qdisc add dev eth0 root prio\"\n[host.b]\n\
                eth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\n[[flow]]\nfrom = \"a\"\n\
                to = \"b\"\nudp = true\nload = \"2mbit\"\n[[expect]]\nwhat = \"a-b loss\"\nvalue = \"< 50%\"\n";
    let parsed = experiment::parse(text, "base.toml").map_err(|d| anyhow::anyhow!("{}", d[0]))?;
    let outcome = simulate(&parsed).map_err(|d| anyhow::anyhow!("{}", d[0]))?;
    Ok(outcome.record.to_json())
}

fn simulate(parsed: &Experiment) -> Result<Outcome, Vec<Diagnostic>> {
    penstock_lab::run::run(parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
}

/// Runs a case, and another beside it.
fn case(kind: &'static str, seed: u64) -> Result<Verdict> {
    let (bytes, others) = (input(kind, seed)?, input(kind, seed.wrapping_add(1))?);
    Ok(match kind {
        "experiment" => experiment_case(&String::from_utf8_lossy(&bytes), &String::from_utf8_lossy(&others)),
        "threads" => threads_case(&String::from_utf8_lossy(&bytes)),
        _ => thrice(|| once(kind, &bytes), || once(kind, &others)),
    })
}

/// What one run of a case that is not an experiment gives: all of it, or why it is refused.
fn once(kind: &str, bytes: &[u8]) -> Result<String, String> {
    let text = || String::from_utf8_lossy(bytes).into_owned();
    match kind {
        "bash" | "python" => checked(kind, &text()),
        "spec" => match serde_json::from_str(&text()) {
            Ok(spec) => penstock_replay::run(&spec).map(|v| v.to_string()).map_err(|d| d.message),
            Err(e) => Err(e.to_string()),
        },
        "capture" => {
            let read = penstock_replay::capture::read(bytes, "a");
            read.map(|t| format!("{t:?}")).map_err(|d| d.message)
        }
        _ => {
            let record = Record::from_json(&text())?;
            Ok(html(&Page { record: &record, series: &Series::new(), outputs: &[], tc: &[] }))
        }
    }
}

/// The same alone, and on another thread while something else runs beside it.
fn thrice<T: PartialEq + Send>(
    one: impl Fn() -> Result<T, String> + Sync,
    other: impl Fn() -> Result<T, String> + Sync,
) -> Verdict {
    let first = one();
    // What becomes of the other is asked where it is the case itself: a panic of its is not this one's.
    let again = std::thread::scope(|scope| {
        let beside = scope.spawn(&other);
        let again = scope.spawn(&one).join();
        let _ = beside.join();
        again
    });
    match again {
        Err(_) => Verdict::Found("it panics on another thread".to_owned()),
        Ok(again) if again != first => {
            Verdict::Found("beside another case it gives something else".to_owned())
        }
        Ok(_) => first.map_or_else(Verdict::Refused, |_| Verdict::Ran),
    }
}

fn checked(kind: &str, text: &str) -> Result<String, String> {
    let name = if kind == "bash" { "wild.sh" } else { "wild.py" };
    let script = Script { text: text.to_owned(), name: name.to_owned(), ..Script::default() };
    let settings = check::Settings { kernel: Kernel::V6_12, dev: None, rate: None };
    Ok(format!("{:?}", check::check(&script, &settings)))
}

/// Whether a run says that the fault is the simulator's, not the experiment's (in the help beside its message).
fn ours(fault: &Diagnostic) -> bool {
    format!("{fault:?}").to_lowercase().contains("fault of penstock")
}

/// Every byte of what a run gives.
fn told(outcome: &Outcome) -> Result<(String, Vec<u8>, Vec<String>), String> {
    let series = outcome.series.to_parquet().map_err(|e| e.to_string())?;
    let mut texts = outcome.outputs.clone();
    texts.extend(outcome.tc.iter().map(|(host, dev, text)| format!("{host} {dev} {text}")));
    Ok((outcome.record.to_json(), series, texts))
}

fn read(text: &str) -> Result<Experiment, String> {
    experiment::parse_with(text, "wild.toml", &|_| Err("no files here".into()))
        .map_err(|d| d[0].message.clone())
}

/// A run's bytes; why it was refused; what a fault of ours said.
type Ran = Result<(String, Vec<u8>, Vec<String>), String>;

/// One run: all it gives, or what it says. A fault of ours begins with a bang.
fn ran(parsed: &Experiment) -> Ran {
    let outcome = simulate(parsed).map_err(|faults| {
        let all = || faults.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("\n");
        if faults.iter().any(ours) { format!("!{}", all()) } else { faults[0].message.clone() }
    })?;
    if let Verdict::Found(what) = sound(&outcome.record) {
        return Err(format!("!{what}"));
    }
    told(&outcome).map_err(|e| format!("!{e}"))
}

fn experiment_case(text: &str, other: &str) -> Verdict {
    let parsed = match read(text) {
        Ok(parsed) => parsed,
        Err(why) => return Verdict::Refused(why),
    };
    let other = read(other);
    let beside = || other.as_ref().map_err(Clone::clone).and_then(ran);
    match thrice(|| ran(&parsed), beside) {
        Verdict::Refused(why) => match why.strip_prefix('!') {
            Some(fault) => Verdict::Found(fault.to_owned()),
            None => Verdict::Refused(why),
        },
        Verdict::Ran => replayed(&parsed),
        verdict => verdict,
    }
}

/// A network by one thread, and by several wherever it can be divided at all: the same bytes.
fn threads_case(text: &str) -> Verdict {
    let parsed = match read(text) {
        Ok(parsed) => parsed,
        Err(why) => return Verdict::Refused(why),
    };
    let by = |threads| {
        let outcome = simulate(&parsed.clone().on_threads(threads))
            .map_err(|faults| faults.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("\n"))?;
        Ok((told(&outcome)?, outcome.one_thread))
    };
    let one: Result<_, String> = by(Threads::One);
    for threads in [2, 3, 8] {
        match (&one, by(Threads::Always(threads))) {
            (_, Ok((_, Some(why)))) => return Verdict::Refused(format!("one thread: {why}")),
            (Ok((one, _)), Ok((several, None))) if *one == several => {}
            (Err(one), Err(several)) if *one == several => return Verdict::Refused(several),
            (Err(why), _) => return Verdict::Found(format!("one thread alone refuses it: {why}")),
            (_, Err(why)) => return Verdict::Found(format!("{threads} threads: {why}")),
            _ => return Verdict::Found(format!("{threads} threads give something else")),
        }
    }
    Verdict::Ran
}

/// The simulator's devices compared with the replay's.
fn replayed(parsed: &Experiment) -> Verdict {
    match beside(parsed) {
        Err(faults) => Verdict::Found(format!("with taps it does not run: {}", faults[0].message)),
        Ok(all) if !all.differences.is_empty() => {
            Verdict::Found(format!("the replay differs: {}", all.differences.join("\n")))
        }
        Ok(all) if all.busy == 0 => Verdict::Ran,
        Ok(all) => Verdict::Replayed(u64::from(all.busy), all.packets),
    }
}

/// Whether the figures can be: a qdisc's own counts, and shares between nothing and all.
fn sound(record: &Record) -> Verdict {
    for flow in &record.flows {
        let rates = [flow.goodput_bit_s, flow.throughput_bit_s];
        if rates.iter().any(|r| !r.is_finite() || *r < 0.0) {
            return Verdict::Found(format!("flow {}: rates of {rates:?}", flow.name));
        }
    }
    for expect in &record.expects {
        if expect.measured.is_some_and(|v| !v.is_finite()) {
            return Verdict::Found(format!("{}: {:?}", expect.what, expect.measured));
        }
    }
    Verdict::Ran
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_tells_how_long_it_worked() {
        let before = cpu_seconds(std::process::id()).unwrap();
        let mut n = 0_u64;
        while cpu_seconds(std::process::id()).unwrap() < before + 0.03 {
            n = std::hint::black_box(n + 1);
        }
        assert_eq!(cpu_seconds(u32::MAX), None);
    }

    #[test]
    fn what_differs_and_what_panics_is_found() {
        let n = std::sync::atomic::AtomicU32::new(0);
        let count = || Ok(n.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string());
        let quiet = || Ok(String::new());
        let differs = Verdict::Found("beside another case it gives something else".to_owned());
        assert_eq!(thrice(count, quiet), differs);
        assert_eq!(thrice(|| Ok("a".to_owned()), quiet), Verdict::Ran);
        assert_eq!(thrice(|| Err("no".to_owned()), quiet), Verdict::Refused("no".to_owned()));
        // What is shared between threads shows where only the other changes it.
        let shared = std::sync::atomic::AtomicU32::new(0);
        let read = || {
            std::thread::sleep(Duration::from_millis(50));
            Ok(shared.load(std::sync::atomic::Ordering::Relaxed).to_string())
        };
        let write = || {
            shared.store(1, std::sync::atomic::Ordering::Relaxed);
            Ok(String::new())
        };
        assert_eq!(thrice(read, write), differs);
        let main = std::thread::current().id();
        let elsewhere = || match std::thread::current().id() == main {
            true => Ok(String::new()),
            false => panic!("on purpose"),
        };
        assert!(matches!(thrice(elsewhere, quiet), Verdict::Found(what) if what.contains("another thread")));
    }

    /// The words are those of `lab::run`: if they change there, a complaint would count as a refusal.
    #[test]
    fn a_run_s_own_complaints_are_finds() {
        let source = include_str!("../../penstock-lab/src/run/mod.rs").to_lowercase();
        assert!(source.matches("fault of penstock").count() >= 2);
        assert!(ours(&Diagnostic::error("x").help("a fault of Penstock's, not of the experiment's")));
        assert!(!ours(&Diagnostic::error("no such device").help("add it")));
    }

    /// A campaign is worth something only if most of it runs.
    #[test]
    fn most_inputs_are_valid() {
        let valid = |seed| {
            let text = input("experiment", seed).unwrap();
            experiment::parse(&String::from_utf8(text).unwrap(), "a").map_err(|d| d[0].to_string())
        };
        let refused: Vec<String> = (0..300).filter_map(|seed| valid(seed).err()).collect();
        assert!(refused.is_empty(), "{} of 300: {}", refused.len(), refused[0]);
    }
}
