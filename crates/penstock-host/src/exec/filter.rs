//! `tc filter` and `tc chain`: requests to a device's tree or to a shared block, and their dumps printed.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `tc_dump_tfilter`, `tc_dump_chain`; iproute2 6.1.0 `tc/tc_filter.c`
//! `tc_filter_list`, `tc/tc_qdisc.c` `tc_qdisc_block_exists`, `lib/libnetlink.c` `rtnl_dump_error`.

use super::Ran;
use super::tc::refused;
use crate::device::NetDevice;
use crate::{Host, Output};
use penstock_lang::show;
use penstock_lang::tc::{self, Command, Link, Show};
use penstock_model::rtnetlink::{ChainDump, FilterDump, FilterRequest};
use penstock_model::{Diagnostic, Handle, KernelError, Time, Value};
use penstock_sched::Cx;
use penstock_sched::cls::{Blocks, Dumped, Select};

impl Host {
    /// What tc finds of a device.
    pub(super) fn tc_link(&self, name: &str) -> Option<Link> {
        let device = self.device(self.ifindex(name)?)?;
        Some(Link { ifindex: device.ifindex, speed_mbit: self.speed(device) })
    }

    /// RTM_NEWTFILTER, RTM_DELTFILTER, RTM_NEWCHAIN, RTM_DELCHAIN: on a device where it has an index, else on the block
    /// the request names.
    pub(super) fn tc_filter(
        &mut self,
        ifindex: Option<u32>,
        chain: bool,
        req: &FilterRequest,
        now: Time,
    ) -> Result<(), KernelError> {
        let req = &self.with_ifindex(req);
        let kernel = self.kernel;
        // A shared block draws from no device's stream: those of `lo` serve it.
        let device = &mut self.devices[ifindex.unwrap_or(1)];
        let mut cx = Cx { now, rng: &mut device.rng, drops: &mut self.drops, acts: &mut self.acts };
        match (ifindex, chain) {
            (Some(_), false) => device.tree.filter(req, &mut cx),
            (Some(_), true) => device.tree.chain(req),
            (None, false) => self.blocks.filter(req, kernel, &mut cx),
            (None, true) => self.blocks.chain(req, kernel),
        }
    }

    /// The request with the index of the device that `indev` names, where there is one.
    fn with_ifindex(&self, req: &FilterRequest) -> FilterRequest {
        let mut req = req.clone();
        if let Some(options) = &mut req.options
            && let Some(index) = options.str("indev").and_then(|name| self.ifindex(name))
        {
            options.set("ifindex", Value::U32(index));
        }
        req
    }

    pub(super) fn show_filters(&self, show: &Show, now: Time) -> Ran {
        let prio = show.prio as u16;
        let select = Select { prio, protocol: show.protocol, chain: show.chain, terse: show.form.brief };
        let look = self.look(now);
        let (dev, (dumps, ended)): (String, Dumped) = match self.shown(show) {
            Err(ran) => return *ran,
            Ok(None) => (String::new(), self.blocks.dump_filters(show.block, select, look)),
            Ok(Some(device)) => (device.name.clone(), device.tree.show_filters(show.parent, select, look)),
        };
        let dumps: Vec<(String, FilterDump)> = dumps.into_iter().map(|d| (dev.clone(), d)).collect();
        let mut out = Output::say(show::filters(&dumps, show, self.kernel));
        if ended.is_some() {
            let line = "Error: Buffer too small for object.";
            out.stderr = format!("{line}\nDump terminated\n");
            out.status = 1;
            out.diagnostics.push(Diagnostic::error(line).help("the kernel shows nothing behind these"));
        }
        out
    }

    pub(super) fn show_chains(&self, show: &Show) -> Ran {
        let (dev, dumps) = match self.shown(show) {
            Err(ran) => return *ran,
            Ok(None) => (String::new(), self.blocks.dump_chains(show.block, show.chain)),
            Ok(Some(device)) => (device.name.clone(), device.tree.dump_chains(show.parent, show.chain)),
        };
        let dumps: Vec<(String, ChainDump)> = dumps.into_iter().map(|d| (dev.clone(), d)).collect();
        Output::say(show::chains(&dumps, show, self.kernel))
    }

    /// The device to look at; `None` where it is a shared block, or nothing: without either the kernel has none to look at.
    fn shown(&self, show: &Show) -> Result<Option<&NetDevice>, Box<Ran>> {
        if let Some(name) = &show.dev {
            let Some(ifindex) = self.ifindex(name) else {
                return Err(Box::new(refused(tc::no_device(name))));
            };
            return Ok(self.device(ifindex));
        }
        if show.block != 0 && self.blocks.find(show.block).is_none() {
            let line = format!("Cannot find block \"{}\"", show.block);
            let help =
                "a block is there while an ingress or clsact qdisc holds it (ingress_block, egress_block)";
            return Err(Box::new(Output {
                stderr: format!("{line}\n"),
                status: 1,
                diagnostics: vec![Diagnostic::error(line).help(help)],
                ..Output::default()
            }));
        }
        Ok(None)
    }

    /// RTM_GETTFILTER and RTM_GETCHAIN of one.
    pub(super) fn tc_get(&self, command: &Command, show: &Show, req: &FilterRequest, now: Time) -> Ran {
        let req = &self.with_ifindex(req);
        let device = match (&show.dev, req.block) {
            (None, 0) => {
                let first = match command {
                    Command::GetFilter(..) => Blocks::check(req, self.kernel).err(),
                    _ => None,
                };
                let error = first.unwrap_or(KernelError::errno(KernelError::ENODEV));
                return refused(tc::refused(command, &error));
            }
            (None, _) => None,
            (Some(name), _) => match self.ifindex(name) {
                Some(ifindex) => self.device(ifindex),
                None => return refused(tc::no_device(name)),
            },
        };
        let dev = device.map_or(String::new(), |d| d.name.clone());
        let text = if matches!(command, Command::GetChain(..)) {
            let found = match device {
                Some(device) => device.tree.get_chain(req),
                None => self.blocks.get_chain(req, self.kernel),
            };
            found.map(|dump| show::chains(&[(dev, dump)], show, self.kernel))
        } else {
            let found = match device {
                Some(device) => device.tree.get_filter(req, self.look(now)),
                None => self.blocks.get(req, self.kernel, self.look(now)),
            };
            found.map(|dump| show::filters(&[(dev, dump)], show, self.kernel))
        };
        match text {
            Ok(text) => Output::say(text),
            Err(error) => refused(tc::refused(command, &error)),
        }
    }

    /// What shows every filter and chain of a device, and those of the shared blocks its qdiscs hold.
    pub(crate) fn filter_shows(&self, device: &NetDevice, now: Time) -> Vec<String> {
        let qdiscs = device.tree.dump_qdiscs(now);
        let classes = device.tree.dump_classes(now);
        let mut parents: Vec<Handle> = qdiscs.iter().map(|q| q.handle).collect();
        let clsact = qdiscs.iter().filter(|q| q.kind == "clsact");
        parents.extend(clsact.flat_map(|_| [Handle(0xffff_fff2), Handle(0xffff_fff3)]));
        parents.extend(classes.iter().map(|c| c.classid));
        parents.retain(|&p| p != Handle::UNSPEC);
        let mut lines = Vec::new();
        let mut say = |place: &dyn std::fmt::Display, chains: bool| {
            lines.push(format!("tc -s filter show {place}"));
            if chains {
                lines.push(format!("tc chain show {place}"));
            }
        };
        for parent in parents {
            // Chain 0 of filters says nothing that the filters do not.
            let chains =
                device.tree.dump_chains(parent, None).iter().any(|c| c.chain != 0 || c.template.is_some());
            say(&format_args!("dev {} parent {parent}", device.name), chains);
        }
        for qdisc in &qdiscs {
            for block in
                ["ingress_block", "egress_block"].into_iter().filter_map(|key| qdisc.options.u32(key))
            {
                say(&format_args!("block {block}"), true);
            }
        }
        lines
    }
}
