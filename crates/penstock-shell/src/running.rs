//! A script that goes on beside the machine's own time: a setup with its jobs, a program of commands with pauses.

use crate::{Console, Course, Halt, Job, Limits, Machine, Script, Shell, Until, started};
use penstock_lang::setup;
use penstock_model::Span;
use std::time::Duration;

/// How a script stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It goes on when its own time is this.
    Waits(Span),
    /// It and its jobs are over: the exit status, or why it could not be run or was stopped at a limit.
    Ended(Result<i32, String>),
}

/// A script under way. Its time begins at zero and goes on only where it waits (`sleep`, `timeout`).
pub struct Running {
    shell: Shell,
    job: Option<Job>,
    course: Option<Course>,
    /// Its own time when its body ended.
    body: Duration,
}

fn span(time: Duration) -> Span {
    Span::from_ns(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

impl Running {
    /// A script, before its first command.
    ///
    /// # Errors
    /// Why it cannot be run at all.
    pub fn new(script: &Script) -> Result<Running, String> {
        Running::begun(script, "")
    }

    /// A setup: what fails is marked on standard error ([`setup::failures`] reads that).
    ///
    /// # Errors
    /// Why it cannot be run at all.
    pub fn setup(script: &Script) -> Result<Running, String> {
        Running::begun(script, &format!("{}; ", setup::TRAP_OF_FILE))
    }

    fn begun(script: &Script, before: &str) -> Result<Running, String> {
        let behind = format!("; {} $?", crate::tools::BODY);
        let (shell, job) = started(&Limits::default(), script, before, &behind)?;
        Ok(Running { shell, job: Some(job), course: None, body: Duration::ZERO })
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

    /// Lets the script go on while its own time is not after `time`.
    pub fn go_on(&mut self, time: Span, machine: &mut dyn Machine, console: &mut dyn Console) -> Progress {
        let mut course = match self.take() {
            Ok(course) => course,
            Err(why) => return Progress::Ended(Err(why)),
        };
        let until = self.body + Duration::from_nanos(u64::try_from(time.as_ns()).unwrap_or(0));
        match self.shell.go_on(&mut course, Some(Until::Time(until)), machine, console) {
            Halt::Ended(done) => Progress::Ended(done),
            Halt::Waits(at) => {
                self.course = Some(course);
                Progress::Waits(span(at.saturating_sub(self.body)))
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
