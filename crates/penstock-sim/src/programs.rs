//! Scripts go on in the world's time, and begin programs.

use crate::app;
use crate::event::{Event, Seq};
use crate::results::AppResult;
use crate::script::{Execute, ScriptState, Scripted};
use crate::sock::Kind;
use crate::world::{App, World};
use penstock_host::{Files, Output};

/// The world, as the script of a program sees it.
struct Of<'a> {
    world: &'a mut World,
    app: u32,
    host: u32,
    programs: &'a mut Vec<u32>,
}

impl Execute for Of<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.world.executed += 1;
        self.world.net.command(self.host, words, files)
    }
    fn launch(&mut self, words: &[String]) -> Option<Result<u32, Output>> {
        let (host, words) = match penstock_lang::ip::netns_exec(words) {
            // Where there is no such namespace ip itself says so.
            Some((name, at)) => (self.world.net.namespace(self.host, &name)?, &words[at..]),
            None => (self.host, words),
        };
        if !words.first().is_some_and(|program| app::has(program)) {
            return None;
        }
        let program = match app::launch_words(words, host, &self.world.net) {
            Ok(program) => program,
            Err(failure) => {
                return Some(Err(Output {
                    stderr: failure.text,
                    status: failure.status,
                    ..Output::default()
                }));
            }
        };
        let n = self.world.push_app(host, &words.join(" "), None, Some(program));
        self.world.apps[n as usize].parent = self.app;
        self.world.apps[self.app as usize].begun.push(n);
        self.programs.push(n);
        self.world.start(n);
        Some(Ok(n))
    }
    fn ended(&mut self) -> Vec<(u32, Output)> {
        let apps = &mut self.world.apps;
        let over: Vec<u32> =
            self.programs.extract_if(.., |n| apps[*n as usize].result.ended.is_some()).collect();
        over.into_iter().map(|n| (n, apps[n as usize].gives())).collect()
    }
    fn kill(&mut self, program: u32) {
        self.world.kill(program);
    }
}

impl App {
    /// What it gives as a process, once it has ended: it is asked but once.
    pub(crate) fn gives(&mut self) -> Output {
        self.program = None;
        let mut stdout = std::mem::take(&mut self.result.output);
        let stderr = stdout.split_off(stdout.len() - std::mem::take(&mut self.result.complaint));
        Output { stdout, stderr, status: self.result.exit.unwrap_or(0), ..Output::default() }
    }
}

impl World {
    /// The script's time has come, unless that was changed.
    pub(crate) fn script_timer(&mut self, n: u32, seq: Seq) {
        let script = &mut self.apps[n as usize].script;
        if script.as_mut().is_some_and(|script| script.timer.fires(seq)) {
            self.script(n);
        }
    }
    /// Lets the script of program `n` go on.
    pub(crate) fn script(&mut self, n: u32) {
        let now = self.net.now();
        let app = &mut self.apps[n as usize];
        let Some(mut scripted) = app.script.take() else { return };
        let (host, started) = (app.host, app.result.started);
        let Scripted { script, timer, programs } = &mut scripted;
        let state = script.go_on(now - started, &mut Of { world: self, app: n, host, programs });
        let printed = script.printed();
        self.apps[n as usize].result.output.push_str(&printed);
        match state {
            ScriptState::Waits(since) => {
                let at = since.map(|since| started.saturating_add(since).max(now));
                timer.move_to(at, Event::Script(n), &mut self.net.queue);
                self.apps[n as usize].script = Some(scripted);
            }
            ScriptState::Ended(status) => {
                let app = &mut self.apps[n as usize];
                app.result.exit = Some(status);
                app.result.ended = Some(now);
                self.start_followers(n);
            }
        }
    }
    /// Tells the script that has begun program `n` that this has ended: it goes on at this instant.
    pub(crate) fn tell_script(&mut self, n: u32) {
        let parent = self.apps[n as usize].parent;
        let now = self.net.now();
        // A script that goes on right now asks by itself.
        let Some(scripted) = self.apps.get_mut(parent as usize).and_then(|app| app.script.as_mut()) else {
            return;
        };
        scripted.timer.move_to(Some(now), Event::Script(parent), &mut self.net.queue);
    }
    /// Ends a program that is under way.
    fn kill(&mut self, n: u32) {
        let result = &mut self.apps[n as usize].result;
        if result.ended.is_some() || app::is_iperf2(&result.program) {
            return;
        }
        result.ended = Some(self.net.now());
        result.exit = Some(128 + 15);
        let host = self.apps[n as usize].host;
        let table = &mut self.net.machines[host as usize].sockets;
        table.pings.retain(|&(_, app, _)| app != n);
        table.raws.retain(|raw| raw.2 != n);
        for sock in 0..self.net.sockets.all.len() as u32 {
            if self.net.sockets[sock].app != n {
                continue;
            }
            match &self.net.sockets[sock].kind {
                Kind::Tcp(_) => self.net.tcp_finish(sock),
                Kind::Udp(_) => self.net.udp_close(sock),
                Kind::Listener(_) => self.net.tcp_deaf(sock),
                Kind::Gone => {}
            }
        }
        self.net.settle(host);
        self.tell_script(n);
    }
    /// Adds to the result of a script what its programs have sent, and what those have printed that are still under way.
    pub(crate) fn add_programs(&self, n: u32, result: &mut AppResult) {
        for &program in &self.apps[n as usize].begun {
            let app = &self.apps[program as usize];
            result.flows.extend(&app.result.flows);
            if app.result.ended.is_some() {
                continue;
            }
            let mut under_way = app.result.clone();
            if let Some(program) = &app.program {
                program.report(&mut under_way, &self.net);
            }
            result.output.push_str(&under_way.output);
        }
    }
}
