//! `tc`: requests to a device's tree, and its dumps printed.

use super::{Files, Loading, Ran};
use crate::{Host, NetDevice, Output};
use penstock_lang::show::{self, Form};
use penstock_lang::tc::{self, Command, Env, Failure, Show, batch};
use penstock_lang::token::{Line, Word};
use penstock_model::rtnetlink::{ActionDump, ActionVerb, ClassDump, FilterRequest, QdiscDump};
use penstock_model::{Diagnostic, KernelError, Options, Time};
use penstock_sched::Cx;
use penstock_sched::cls::Blocks;

impl Host {
    pub(super) fn tc(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let objects = Loading::new(files, self.kernel, self.bpf_programs);
        let parsed = {
            let device = |name: &str| self.tc_link(name);
            tc::parse_in(&line.words, &Env { kernel: self.kernel, device: &device, objects: &objects })
        };
        self.bpf_programs = objects.loaded();
        let commands = match parsed {
            Ok(commands) => commands,
            Err(failure) => return refused(failure),
        };
        match commands.as_slice() {
            [said @ .., Command::Batch { file, force, form }] => {
                let mut out = self.tc_commands(said, now);
                self.tc_batch(&mut out, file, *force, form, files, now);
                out
            }
            commands => self.tc_commands(commands, now),
        }
    }

    /// Executes a file line by line: each line that succeeds stays, whatever becomes of those after it.
    ///
    /// Follows: iproute2 6.1.0 `lib/utils.c` `do_batch`.
    fn tc_batch(
        &mut self,
        out: &mut Ran,
        file: &str,
        force: bool,
        form: &Form,
        files: &mut dyn Files,
        now: Time,
    ) {
        let text = match files.read(file) {
            Ok(text) => text,
            Err(why) => {
                out.stderr.push_str(&format!("Cannot open file \"{file}\" for reading: {why}\n"));
                out.status = 1;
                return;
            }
        };
        let sources: Vec<&str> = text.lines().collect();
        let mut tried = false;
        for line in batch::lines(&text, self.kernel) {
            let line = match line {
                Ok(line) => line,
                Err(fault) => {
                    out.stderr.push_str(&fault.stderr);
                    out.status = if fault.exits { 1 } else { out.status };
                    return;
                }
            };
            let objects = Loading::new(files, self.kernel, self.bpf_programs).tried(tried);
            let parsed = {
                let device = |name: &str| self.tc_link(name);
                let env = Env { kernel: self.kernel, device: &device, objects: &objects };
                tc::parse_batch_line(&line.words, form, &env)
            };
            (self.bpf_programs, tried) = (objects.loaded(), objects.has_tried());
            let (one, aborts) = match parsed {
                Ok(commands) => (self.tc_commands(&commands, now), false),
                Err(failure) => (refused(failure.clone()), failure.aborts),
            };
            out.stdout.push_str(&one.stdout);
            out.stderr.push_str(&one.stderr);
            if one.status == 0 {
                continue;
            }
            let source = sources.get(line.number as usize - 1).copied().unwrap_or("");
            let place =
                |d: Diagnostic| Diagnostic { file: file.to_owned(), line: line.number, ..d }.source(source);
            out.diagnostics.extend(one.diagnostics.into_iter().map(place));
            if aborts {
                out.status = one.status;
                return;
            }
            out.stderr.push_str(&format!("Command failed {file}:{}\n", line.number));
            out.status = 1;
            if !force {
                return;
            }
        }
    }

    fn tc_commands(&mut self, commands: &[Command], now: Time) -> Ran {
        let mut out = Output::default();
        for command in commands {
            let one = self.tc_command(command, now);
            out.stdout.push_str(&one.stdout);
            out.stderr.push_str(&one.stderr);
            out.diagnostics.extend(one.diagnostics);
            if one.status != 0 {
                out.status = one.status;
                break;
            }
        }
        out
    }

    /// A device's speed, Mbit/s, where it tells one.
    pub(crate) fn speed(&self, device: &NetDevice) -> Option<u32> {
        device.speed_mbit.or(device.class.speed(self.kernel))
    }

    fn tc_command(&mut self, command: &Command, now: Time) -> Ran {
        match command {
            Command::Help(text) => Output { stderr: text.clone(), ..Output::default() },
            Command::Say(text) => Output::say(text.clone()),
            // A batch within a batch is not a line of one: `tc` reads it with its flags, which only the command line has.
            Command::Batch { .. } => Output::default(),
            Command::Filter { dev: None, req } if req.block != 0 => {
                self.tc_block_request(command, false, req, now)
            }
            Command::Chain { dev: None, req } if req.block != 0 => {
                self.tc_block_request(command, true, req, now)
            }
            Command::Qdisc { dev, .. }
            | Command::Class { dev, .. }
            | Command::Filter { dev, .. }
            | Command::Chain { dev, .. } => {
                let ifindex = match self.tc_device(command, dev.as_deref()) {
                    Ok(ifindex) => ifindex,
                    Err(ran) => return *ran,
                };
                match self.tc_request(ifindex, command, now) {
                    Ok(()) => Output { stderr: self.tc_warning(ifindex), ..Output::default() },
                    Err(error) => refused(tc::refused(command, &error)),
                }
            }
            Command::ShowQdisc(show) => self.tc_show(show, now, Host::show_qdiscs),
            Command::ShowClass(show) => self.tc_show(show, now, Host::show_classes),
            Command::Action { req, form } => match self.acts.request(req, self.kernel, now) {
                Ok(answer) => {
                    let mut out = Output::default();
                    if req.verb == ActionVerb::Get {
                        // A `get` is never terse.
                        let form = Form { brief: false, ..form.clone() };
                        out.stdout = show::actions(&[(0, answer.actions)], &form, self.kernel);
                    }
                    out.stderr = answer.warning.map(|said| warning(&said)).unwrap_or_default();
                    out
                }
                Err(error) => refused(tc::refused(command, &error)),
            },
            Command::ShowActions { dump, form } => self.show_actions(dump, form, now),
            Command::Fail(failure) => refused(failure.clone()),
            Command::ShowFilter(show) => self.show_filters(show, now),
            Command::ShowChain(show) => self.show_chains(show),
            Command::GetFilter(show, req) | Command::GetChain(show, req) => {
                self.tc_get(command, show, req, now)
            }
        }
    }

    fn show_actions(&self, dump: &ActionDump, form: &Form, now: Time) -> Ran {
        let look = self.look(now);
        let actions = self.acts.dump(&dump.kind, dump.since_ms, look, self.kernel);
        let messages: Vec<(u32, Vec<Options>)> =
            actions.filter(|a| !a.is_empty()).map(|a| (a.len() as u32, a)).into_iter().collect();
        // gate does not print itself without its options.
        let silent = form.brief && dump.kind == "gate";
        let faults = messages.iter().map(|m| m.1.len()).filter(|_| silent).sum();
        let stderr = "Error printing action\n".repeat(faults);
        Output { stderr, ..Output::say(show::actions(&messages, form, self.kernel)) }
    }

    /// A command that shows, on a machine that stays as it is; nothing for any other.
    pub(crate) fn tc_read(&self, words: &[Word], now: Time) -> Ran {
        let device = |name: &str| self.tc_link(name);
        let parsed =
            tc::parse_in(words, &Env { kernel: self.kernel, device: &device, objects: &tc::NoObjects });
        match parsed.as_deref() {
            Ok([Command::ShowQdisc(show)]) => self.tc_show(show, now, Host::show_qdiscs),
            Ok([Command::ShowClass(show)]) => self.tc_show(show, now, Host::show_classes),
            Ok([Command::ShowFilter(show)]) => self.show_filters(show, now),
            Ok([Command::ShowChain(show)]) => self.show_chains(show),
            Ok([Command::ShowActions { dump, form }]) => self.show_actions(dump, form, now),
            _ => Output::default(),
        }
    }

    /// A request that names a shared block and no device.
    fn tc_block_request(&mut self, command: &Command, chain: bool, req: &FilterRequest, now: Time) -> Ran {
        match self.tc_filter(None, chain, req, now) {
            Ok(()) => Output::default(),
            Err(error) => refused(tc::refused(command, &error)),
        }
    }

    /// The device a request names, or what tc says where there is none.
    fn tc_device(&self, command: &Command, dev: Option<&str>) -> Result<u32, Box<Ran>> {
        match dev {
            None => {
                // tc_new_tfilter and its kin look at the priority first.
                let error = match command {
                    Command::Filter { req, .. } => Blocks::check(req, self.kernel).err(),
                    _ => None,
                };
                Err(Box::new(refused(tc::refused(command, &error.unwrap_or_else(no_device)))))
            }
            Some(name) => self.ifindex(name).ok_or_else(|| Box::new(refused(tc::no_device(name)))),
        }
    }

    fn tc_request(&mut self, ifindex: u32, command: &Command, now: Time) -> Result<(), KernelError> {
        if matches!(command, Command::Qdisc { req, .. } if req.kind.as_deref() == Some("teql0")) {
            self.teql_takes(ifindex)?;
        }
        let auto_handle = self.auto_handle;
        let device = &mut self.devices[ifindex];
        device.tree.set_auto_handle(auto_handle);
        let mut cx = Cx { now, rng: &mut device.rng, drops: &mut self.drops, acts: &mut self.acts };
        let mut done = match command {
            Command::Qdisc { req, .. } => device.tree.qdisc(req, &mut cx),
            Command::Class { req, .. } => device.tree.class(req, &mut cx),
            _ => Ok(()),
        };
        // A handle that was chosen is used up, even where the qdisc was then refused.
        self.auto_handle = device.tree.auto_handle();
        // A qdisc that is made gives a device without txqueuelen one, if it needs no queue.
        device.tx_queue_len = device.tree.device().tx_queue_len;
        match command {
            Command::Filter { req, .. } => done = self.tc_filter(Some(ifindex), false, req, now),
            Command::Chain { req, .. } => done = self.tc_filter(Some(ifindex), true, req, now),
            _ => {}
        }
        done?;
        if matches!(command, Command::Qdisc { .. }) {
            self.teql_follow(now);
        }
        self.kick_later(ifindex);
        Ok(())
    }

    /// What the kernel added to a request that succeeded, as libnetlink prints it.
    fn tc_warning(&mut self, ifindex: u32) -> String {
        let device = &mut self.devices[ifindex];
        match device.tree.take_warning() {
            Some(said) => warning(&said),
            None => String::new(),
        }
    }

    fn tc_show(&self, show: &Show, now: Time, print: fn(&Host, &[u32], &Show, Time) -> String) -> Ran {
        let devices: Vec<u32> = match &show.dev {
            None => self.devices.by_age().into_iter().map(|d| d.ifindex).collect(),
            Some(name) => match self.ifindex(name) {
                Some(ifindex) => vec![ifindex],
                None => return refused(tc::no_device(name)),
            },
        };
        Output::say(print(self, &devices, show, now))
    }

    /// A device's qdiscs as the kernel dumps them.
    pub fn dump_qdiscs(&self, ifindex: u32, now: Time) -> Vec<QdiscDump> {
        let Some(device) = self.device(ifindex) else { return Vec::new() };
        let mut all = device.tree.dump_qdiscs(now);
        if let (Some(teql), Some(root)) = (&device.teql, all.first_mut()) {
            let (packets, bytes, times) = teql.requeued();
            root.stats.qlen += packets;
            root.stats.backlog += bytes;
            root.stats.requeues = root.stats.requeues.wrapping_add(times);
        }
        all
    }
    fn show_qdiscs(&self, devices: &[u32], show: &Show, now: Time) -> String {
        let mut dumps = Vec::new();
        for &ifindex in devices {
            let device = &self.devices[ifindex];
            let dump = match show.invisible {
                true => device.tree.dump_invisible(now),
                false => self.dump_qdiscs(ifindex, now),
            };
            dumps.extend(dump.into_iter().map(|d| (device.name.clone(), d)));
        }
        show::qdiscs(&dumps, show, self.kernel)
    }

    fn show_classes(&self, devices: &[u32], show: &Show, now: Time) -> String {
        let mut dumps: Vec<(String, ClassDump)> = Vec::new();
        // Without a device the kernel has none to look at, and tc prints nothing.
        let devices = if show.dev.is_some() { devices } else { &[] };
        for device in devices.iter().filter_map(|&i| self.device(i)) {
            // The kernel looks below one qdisc where a parent is named.
            let all = device.tree.show_classes(show.parent, now);
            dumps.extend(all.into_iter().map(|d| (device.name.clone(), d)));
        }
        show::classes(&dumps, show, self.kernel)
    }
}

/// As libnetlink prints it.
fn warning(said: &str) -> String {
    format!("Warning: {said}{}\n", if said.ends_with('.') { "" } else { "." })
}

/// The kernel's answer to a request without a device.
fn no_device() -> KernelError {
    KernelError::errno(KernelError::ENODEV)
}

pub(super) fn refused(failure: Failure) -> Ran {
    Output {
        stdout: String::new(),
        stderr: failure.stderr,
        status: failure.exit,
        diagnostics: vec![*failure.diagnostic],
    }
}
