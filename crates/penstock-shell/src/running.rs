//! A script that goes on beside the machine's own time: a setup with its jobs, a program of commands with pauses.

use crate::{Console, Course, Halt, Job, Limits, Machine, Script, Shell, Until, plain, started};
use penstock_lang::setup;
use penstock_model::Span;
use std::time::Duration;

/// How a script stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It goes on when its own time is this, or when a program of its has ended; `None`: then alone.
    Waits(Option<Span>),
    /// It and its jobs are over: the exit status, or why it could not be run or was stopped at a limit.
    Ended(Result<i32, String>),
}

/// A script under way. Its time begins at zero and goes on only where it waits (`sleep`, `timeout`).
pub struct Running(Way);

enum Way {
    /// Plain commands, all of them at once; whether failures are marked.
    Plain {
        commands: Vec<plain::Plain>,
        script: Box<Script>,
        marks: bool,
    },
    Interpreted(Box<Interpreted>),
}

/// What the interpreter runs.
struct Interpreted {
    /// Goes first: a question that is held would have the interpreter wait for its answer, and the shell for the interpreter.
    course: Option<Course>,
    shell: Shell,
    job: Option<Job>,
    /// Its own time when its body ended.
    body: Duration,
}

pub(crate) fn span(time: Duration) -> Span {
    Span::from_ns(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

impl Running {
    /// A script, before its first command.
    ///
    /// # Errors
    /// Why it cannot be run at all.
    pub fn new(script: &Script) -> Result<Running, String> {
        Running::begun(script, false)
    }

    /// A setup: what fails is marked on standard error ([`setup::failures`] reads that).
    ///
    /// # Errors
    /// Why it cannot be run at all.
    pub fn setup(script: &Script) -> Result<Running, String> {
        Running::begun(script, true)
    }

    fn begun(script: &Script, marks: bool) -> Result<Running, String> {
        let usual = script.args.is_empty() && script.stdin.is_empty();
        match plain::commands(&script.text).filter(|_| usual) {
            Some(commands) => Ok(Running(Way::Plain { commands, script: Box::new(script.clone()), marks })),
            None => Interpreted::new(script, marks).map(|i| Running(Way::Interpreted(Box::new(i)))),
        }
    }

    /// Lets the script come to its end, its pauses being nothing of the machine's. Answers its exit status, and whether jobs of its go
    /// on ([`go_on`](Running::go_on): their time is counted from here).
    ///
    /// # Errors
    /// Why it could not be run, or the limit it was stopped at.
    pub fn body(
        &mut self,
        machine: &mut dyn Machine,
        console: &mut dyn Console,
    ) -> Result<(i32, bool), String> {
        match &mut self.0 {
            Way::Plain { commands, script, marks } => {
                let commands = std::mem::take(commands);
                plain::run(commands, script, *marks, Limits::default().commands, machine, console)
                    .map(|status| (status, false))
            }
            Way::Interpreted(running) => running.body(machine, console),
        }
    }

    /// Its own time at the end of its body.
    pub fn took(&self) -> Span {
        match &self.0 {
            Way::Plain { .. } => Span::ZERO,
            Way::Interpreted(running) => span(running.body),
        }
    }

    /// Lets the script go on while its own time is not after `time`.
    pub fn go_on(&mut self, time: Span, machine: &mut dyn Machine, console: &mut dyn Console) -> Progress {
        match &mut self.0 {
            Way::Plain { commands, script, marks } => {
                let commands = std::mem::take(commands);
                Progress::Ended(plain::run(
                    commands,
                    script,
                    *marks,
                    Limits::default().commands,
                    machine,
                    console,
                ))
            }
            Way::Interpreted(running) => running.go_on(time, machine, console),
        }
    }
}

impl Interpreted {
    fn new(script: &Script, marks: bool) -> Result<Interpreted, String> {
        let before = if marks { format!("{}; ", setup::TRAP_OF_FILE) } else { String::new() };
        let behind = format!("; {} $?", crate::tools::BODY);
        let (shell, job) = started(&Limits::default(), script, &before, &behind)?;
        Ok(Interpreted { shell, job: Some(job), course: None, body: Duration::ZERO })
    }

    fn body(&mut self, machine: &mut dyn Machine, console: &mut dyn Console) -> Result<(i32, bool), String> {
        let mut course = self.take()?;
        match self.shell.go_on(&mut course, Some(Until::Body), machine, console) {
            Halt::Ended(done) => done.map(|status| (status, false)),
            Halt::Waits(_) => unreachable!("a body is not held up by time"),
            Halt::Body(at, status) => {
                self.body = at;
                // What has no jobs is over at once.
                match self.shell.go_on(&mut course, Some(Until::Time(at)), machine, console) {
                    Halt::Ended(done) => done.map(|_| (status, false)),
                    Halt::Waits(_) | Halt::Body(..) => {
                        self.course = Some(course);
                        Ok((status, true))
                    }
                }
            }
        }
    }

    fn go_on(&mut self, time: Span, machine: &mut dyn Machine, console: &mut dyn Console) -> Progress {
        let mut course = match self.take() {
            Ok(course) => course,
            Err(why) => return Progress::Ended(Err(why)),
        };
        let until = self.body + Duration::from_nanos(u64::try_from(time.as_ns()).unwrap_or(0));
        match self.shell.go_on(&mut course, Some(Until::Time(until)), machine, console) {
            Halt::Ended(done) => Progress::Ended(done),
            Halt::Waits(at) => {
                self.course = Some(course);
                Progress::Waits((at != crate::NEVER).then(|| span(at.saturating_sub(self.body))))
            }
            Halt::Body(..) => unreachable!("only a body's end is waited for"),
        }
    }

    fn take(&mut self) -> Result<Course, String> {
        match self.job.take() {
            Some(job) => self.shell.begin(job),
            None => self.course.take().ok_or_else(crate::dead),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{At, Kept};
    use penstock_host::Host;
    use penstock_model::{Kernel, Rng, Time};

    fn shown(running: &mut Running, host: &mut Host) -> String {
        let mut kept = Kept::default();
        let done = running.body(&mut At { host, now: Time::ZERO }, &mut kept);
        let shows = ["tc -s qdisc", "tc class show dev eth0", "sysctl net.ipv4.ip_forward", "ip -d addr"];
        let state: String = shows.iter().map(|show| host.exec(show, Time::ZERO).stdout).collect();
        let (failed, rest, last) = setup::failures(&kept.stderr, 0);
        format!("{done:?}\n{}{rest}{failed:?}{last:?}\n{:?}\n{state}", kept.stdout, kept.commands)
    }

    #[test]
    fn a_script_that_goes_on_for_ever_is_left_alone() {
        for text in [
            "while sleep 0.5; do tc qdisc show dev eth0 | grep -c pfifo; done",
            "(while :; do sleep 1; tc qdisc; done) & sleep 30; tc qdisc",
            "sleep 5; while :; do tc qdisc; done",
            "trap 'tc qdisc' EXIT; sleep 100; tc qdisc",
            "sleep 1000",
        ] {
            let script = Script { text: text.to_owned(), name: "app".to_owned(), ..Script::default() };
            let mut host = Host::new("penstock", Kernel::V6_12, 1);
            host.add_device("eth0");
            let mut running = Running::new(&script).unwrap();
            let mut kept = Kept::default();
            let mut now = Span::ZERO;
            for _ in 0..4 {
                match running.go_on(now, &mut At { host: &mut host, now: Time::ZERO }, &mut kept) {
                    Progress::Waits(Some(at)) if at <= Span::from_secs(3) => now = at,
                    Progress::Waits(_) => break,
                    Progress::Ended(done) => panic!("{text}: it ended: {done:?}"),
                }
            }
            drop(running);
        }
    }

    #[test]
    fn plain_scripts_mean_the_same_to_the_interpreter() {
        const LINES: [&str; 16] = [
            "tc qdisc add dev eth0 root handle 1: htb default 10",
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit",
            "  tc class add dev eth0 parent 1: classid 1:10 htb rate 1foo",
            "tc qdisc add dev eth0 parent 1:10 sfq perturb 10",
            "tc qdisc del dev eth0 root",
            "tc qdisc add dev eth0 root tbf rate 1mbit",
            "tc -s qdisc show dev eth0",
            "# a comment; with \"everything' $in it",
            "",
            "sysctl -w net.ipv4.ip_forward=1",
            "sysctl -w net.ipv4.nothing=1",
            "ip addr add 10.0.0.1/24 dev eth0",
            "ip link set dev eth9 up",
            "iptables-legacy -t mangle -A POSTROUTING -p udp -j MARK --set-mark 7",
            "sudo uname -r",
            "ip route add default via 10.0.0.9",
        ];
        let mut dice = Rng::named(7, "plain");
        for _ in 0..40 {
            // The interpreter does not know the line of what stands behind `sudo`: each line but once.
            let mut lines: Vec<&str> = Vec::new();
            for _ in 0..dice.below(14) {
                let line = LINES[dice.below(16) as usize];
                if !line.starts_with("sudo") || !lines.contains(&line) {
                    lines.push(line);
                }
            }
            let text = lines.join("\n") + "\n\n:\n";
            let script = Script { text, name: "setup".to_owned(), ..Script::default() };
            let machine = || {
                let mut host = Host::new("penstock", Kernel::V6_12, 1);
                host.add_device("eth0");
                host
            };
            let mut plain = Running::setup(&script).unwrap();
            assert!(matches!(plain.0, Way::Plain { .. }), "{}", script.text);
            let mut interpreted =
                Running(Way::Interpreted(Box::new(Interpreted::new(&script, true).unwrap())));
            assert_eq!(
                shown(&mut plain, &mut machine()),
                shown(&mut interpreted, &mut machine()),
                "{}",
                script.text
            );
        }
    }
}
