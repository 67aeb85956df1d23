//! `ip`: addresses, links, routes, rules, neighbours and namespaces, changed and shown.
//!
//! Follows: linux v6.12 `net/ipv4/devinet.c`, `fib_semantics.c`, `fib_frontend.c`, `fib_rules.c`, `net/core/rtnetlink.c`,
//! `neighbour.c`, `net_namespace.c` for what is refused and how; the same of 2.6.35, which gives no sentences.

mod addr;
mod bond;
mod bridge;
mod gateway;
mod iptoken;
mod link;
mod maddr;
mod neigh;
mod netns;
mod nexthop;
mod ntable;
mod route;
mod routecache;
mod routeget;
mod rule;
mod tables;
mod tcpmetrics;
mod tunnel;
mod tuntap;
mod vrf;

use super::{Files, Ran};
use crate::{Host, Output};
use penstock_lang::ip::{self, Command, Failure, Form, LinkFilter};
use penstock_lang::token::Line;
use penstock_model::{Kernel, KernelError, Time};

/// Kinds of links that are not here, with what to do instead.
pub(super) fn kinds_elsewhere() -> impl Iterator<Item = (&'static str, &'static str)> {
    link::ELSEWHERE.into_iter().filter(|(kind, _)| crate::device::class(kind).is_none())
}

/// What a command gave: standard output, and what it says beside.
pub(super) type Done = Result<String, Failure>;

/// A refusal of the program itself.
pub(super) fn says(exit: i32, stderr: impl Into<String>) -> Failure {
    Failure { stderr: format!("{}\n", stderr.into()), exit, word: 0, help: String::new() }
}
/// A refusal of the kernel without a sentence.
pub(super) fn errno(errno: i32) -> Failure {
    ip::refused(&KernelError::errno(errno))
}
pub(super) fn quiet(result: Result<(), KernelError>) -> Done {
    result.map(|()| String::new()).map_err(|e| ip::refused(&e))
}

impl Host {
    pub(super) fn ip(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        if let Some(name) = ip::netns_option(&line.words) {
            let name = name.to_owned();
            let run = |host: &mut Host| host.ip_here(line, files, now);
            return match self.space_of(&name).and_then(|space| self.in_space(space, run)) {
                Some(ran) => ran,
                None => Output::fail(crate::netns::no_space(&name), 255, "ip netns lists the namespaces"),
            };
        }
        self.ip_here(line, files, now)
    }

    fn ip_here(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let tables = tables::Tables::of(line, files);
        let line = &tables.numbered(line);
        let command = match ip::parse(&line.words, self.kernel) {
            Ok(Command::Netns(command, form)) => return self.ip_netns(command, form, line, files, now),
            Ok(Command::Batch(file, force)) => return self.ip_batch(&file, force, line, files, now),
            Ok(Command::NexthopFlush(filter)) => {
                let refused = |f: Failure| Output::fail(f.stderr, f.exit, &f.help).at_word(line, f.word);
                return self.nexthop_flush(&filter).unwrap_or_else(refused);
            }
            Ok(command) => command,
            Err(f) => return Output::fail(f.stderr, f.exit, &f.help).at_word(line, f.word),
        };
        let warning = match &command {
            Command::AddrAdd { spec, .. } | Command::AddrDel(spec) => spec.warning.clone(),
            _ => String::new(),
        };
        let mut out = match self.ip_command(command, now) {
            Ok(stdout) => Output::say(tables.named(stdout)),
            // A remark.
            Err(f) if f.exit == 0 => Output { stderr: f.stderr, ..Output::default() },
            Err(f) => Output::fail(f.stderr, f.exit, &f.help).at_word(line, f.word),
        };
        out.stderr.insert_str(0, &warning);
        out
    }

    /// `do_batch`: line by line, each with the options of the first; what succeeds stays.
    fn ip_batch(&mut self, file: &str, force: bool, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let text = match files.read(file) {
            Ok(text) => text,
            Err(why) => {
                return Output::fail(format!("Cannot open file \"{file}\" for reading: {why}\n"), 1, "");
            }
        };
        let options: Vec<String> = line.words[1..]
            .iter()
            .map(|w| w.text.clone())
            .take_while(|w| w.starts_with('-') && !w.trim_start_matches('-').starts_with('b'))
            .collect();
        let mut all = Output::default();
        for (number, source) in (1..).zip(text.lines()) {
            let words = match penstock_lang::token::words(source) {
                Ok(words) if words.is_empty() => continue,
                Ok(words) => words.into_iter().map(|w| w.text),
                Err(fault) => {
                    all.stderr.push_str(&format!("{}\n", fault.message));
                    all.status = 1;
                    continue;
                }
            };
            let words: Vec<String> =
                std::iter::once("ip".to_owned()).chain(options.iter().cloned()).chain(words).collect();
            let one = self.ip_here(&Line::of_words(&words), files, now);
            all.stdout.push_str(&one.stdout);
            all.stderr.push_str(&one.stderr);
            if one.status != 0 {
                all.stderr.push_str(&format!("Command failed {file}:{number}\n"));
                all.diagnostics.extend(one.diagnostics);
                all.status = 1;
                if !force {
                    break;
                }
            }
        }
        all
    }

    /// A refusal: the sentence under 6.12, the bare errno under 2.6.35.
    pub(super) fn no(&self, errno: i32, sentence: &str) -> Failure {
        ip::refused(&match self.kernel {
            Kernel::V2_6_35 => KernelError::errno(errno),
            Kernel::V6_12 | Kernel::V7_2 => KernelError::new(errno, sentence),
        })
    }
    pub(super) fn dev(&self, name: &str) -> Result<u32, Failure> {
        self.ifindex(name).ok_or_else(|| ip::no_device(name))
    }
    /// `ip … show dev NAME` has its own words for a device that is not there.
    pub(super) fn shown_dev(&self, name: &str) -> Result<u32, Failure> {
        self.ifindex(name).ok_or_else(|| Failure {
            stderr: format!("Device \"{name}\" does not exist.\n"),
            exit: 1,
            word: 0,
            help: "ip link shows the devices there are".to_owned(),
        })
    }

    fn ip_command(&mut self, command: Command, now: Time) -> Done {
        match command {
            Command::Say(text) => Ok(text),
            Command::AddrAdd { spec, replace } => self.addr_add(&spec, replace, now),
            Command::AddrDel(spec) => self.addr_del(&spec),
            Command::AddrFlush(filter) => self.addr_flush(&filter),
            Command::Show(filter, form) => {
                let devices = self.chosen_links(&filter)?;
                let views = devices.into_iter().map(|i| self.link_view(i, now)).collect::<Vec<_>>();
                Ok(ip::links(&views, &filter, form, self.kernel))
            }
            Command::Link(request) => self.link_request(&request, now),
            Command::AltNames { dev, add, names } => self.alt_names(&dev, add, names),
            Command::Route(verb, spec) => self.route_change(verb, &spec, now),
            Command::RouteShow(filter, form) => self.route_show(&filter, form, now),
            Command::RouteGet(question, form) => self.route_get(&question, form, now),
            Command::RouteFlush(filter, form) => self.route_flush(&filter, form),
            Command::Nexthop(verb, spec) => self.nexthop_change(verb, &spec),
            Command::NexthopShow(filter, form) => self.nexthop_show(&filter, form),
            Command::NexthopGet(id, form) => self.nexthop_get(id, form),
            Command::Rule(verb, spec, form) => self.ip_rule(verb, *spec, form),
            Command::NeighShow(filter, form) => self.neigh_show(&filter, form, now),
            Command::Neigh(verb, spec) => self.neigh_change(verb, &spec, now),
            Command::NeighFlush(filter, form) => self.neigh_flush_some(&filter, form),
            Command::Tunnel(request) => self.tunnel_request(&request, now),
            Command::TunnelShow(name, form) => self.tunnel_show(name.as_deref(), form),
            Command::Tun(request) => self.tun_request(&request, now),
            Command::Token(set) => self.token_set(&set, now),
            Command::TokenShow(dev, form) => self.token_show(dev.as_deref(), form),
            Command::TcpMetrics(asked, form) => self.tcp_metrics_command(&asked, form, now),
            Command::TunShow(form) => Ok(self.tun_show(form)),
            Command::MaddrShow(dev, form) => self.maddr_show(dev.as_deref(), form),
            Command::Maddr { add, mac, dev } => self.maddr_change(&dev, mac, add),
            Command::AddrLabel(request, form) => self.addr_label(&request, form),
            Command::NetconfShow(dev, form) => self.netconf_show(dev.as_deref(), form),
            Command::NtableShow(filter, form) => self.ntable_show(&filter, form, now),
            Command::NtableChange(change) => self.ntable_change(&change),
            Command::VrfShow(name, form) => self.vrf_show(name.as_deref(), form),
            Command::VrfPids(name) => self.table_of_vrf(&name, "Invalid VRF name").map(|_| String::new()),
            Command::VrfExec(name, _) => self.vrf_exec(&name),
            Command::Netns(..) | Command::Batch(..) | Command::NexthopFlush(_) => Ok(String::new()),
        }
    }

    /// The devices a listing is of, by index.
    fn chosen_links(&self, filter: &LinkFilter) -> Result<Vec<u32>, Failure> {
        let only = filter.dev.as_deref().map(|d| self.shown_dev(d)).transpose()?;
        let master = match filter.master.as_deref() {
            Some(name) if filter.master_is_vrf => Some(self.vrf_called(name, "Not a valid VRF name\n")?),
            Some(name) => match self.ifindex(name) {
                Some(index) => Some(index),
                None => {
                    let text = format!("Error: argument \"{name}\" is wrong: Device does not exist\n");
                    return Err(says(255, text));
                }
            },
            None => None,
        };
        let wanted = self.devices.iter().filter(|d| {
            only.is_none_or(|i| i == d.ifindex)
                && (!filter.up || d.up)
                && filter.group.is_none_or(|g| g == d.group)
                && master.is_none_or(|m| d.master == Some(m))
                && (!filter.nomaster || d.master.is_none())
                && filter.kind.as_ref().is_none_or(|kind| match kind.strip_suffix("_slave") {
                    Some(kind) => {
                        d.master.and_then(|m| self.devices.get(m)).is_some_and(|m| m.class.kind == kind)
                    }
                    None => !d.loopback && d.class.type_name() == kind,
                })
        });
        Ok(wanted.map(|d| d.ifindex).collect())
    }
}

/// What `-s` says of a flush of so many entries, which is over after one round.
fn rounds(flushed: usize, form: Form) -> String {
    match (form.stats, flushed) {
        (0, _) => String::new(),
        (_, 0) => "Nothing to flush.\n".to_owned(),
        (_, n) => {
            format!("\n*** Round 1, deleting {n} entries ***\n*** Flush is complete after 1 round ***\n")
        }
    }
}
