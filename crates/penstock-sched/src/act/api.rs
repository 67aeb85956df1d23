//! `tc actions`: RTM_NEWACTION, RTM_DELACTION, RTM_GETACTION.
//!
//! Follows: linux v6.12 `net/sched/act_api.c` `tc_ctl_action`, `tca_action_gd`, `tca_action_flush`, `tc_dump_action`,
//! `tcf_dump_walker`, `tcf_del_walker`.

use super::table::{Ask, Look};
use super::{Actions, MAX_PRIO, find, refusal};
use penstock_model::rtnetlink::{ActionRequest, ActionVerb};
use penstock_model::{Kernel, KernelError, Options, Time};

/// What a request about actions is answered.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// The actions of a `get`.
    pub actions: Vec<Options>,
    /// The sentence 6.12 adds to a request that succeeded, for tc to print as a warning.
    pub warning: Option<String>,
}

impl Actions {
    /// Executes a request.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn request(&mut self, req: &ActionRequest, kernel: Kernel, now: Time) -> Result<Answer, KernelError> {
        match req.verb {
            ActionVerb::Add | ActionVerb::Replace => {
                let replace = req.verb == ActionVerb::Replace;
                let ask = Ask {
                    kernel,
                    now,
                    filter: None,
                    replace,
                    police: false,
                    estimator: None,
                    ingress: false,
                    clsact: false,
                };
                let made = self.init(&req.actions, &ask)?;
                Ok(Answer { actions: Vec::new(), warning: made.warning.map(str::to_owned) })
            }
            ActionVerb::Flush => self.flush(req, kernel),
            ActionVerb::Del | ActionVerb::Get => {
                let found = self.lookup(&req.actions, kernel)?;
                if req.verb == ActionVerb::Get {
                    let picked = (1..).zip(found).map(|(order, (kind, index))| (order, kind, index));
                    let actions = self.dump_numbered(picked, now);
                    return Ok(Answer { actions, warning: None });
                }
                self.delete(&found, kernel).map(|()| Answer::default())
            }
        }
    }

    /// `tcf_action_get_1` of each.
    fn lookup(&mut self, list: &[Options], kernel: Kernel) -> Result<Vec<(&'static str, u32)>, KernelError> {
        let no = |errno, why| refusal(kernel, errno, why);
        let mut found = Vec::new();
        for one in list.iter().take(MAX_PRIO) {
            let index =
                one.u32("index").ok_or_else(|| no(KernelError::EINVAL, "Invalid TC action index value"))?;
            let spec = one
                .str("kind")
                .and_then(|kind| find(kind, kernel))
                .ok_or_else(|| no(KernelError::EINVAL, "Specified TC action kind not found"))?;
            if self.table(spec.id).at(index).is_none() {
                return Err(no(KernelError::ENOENT, "TC action with specified index not found"));
            }
            found.push((spec.id, index));
        }
        Ok(found)
    }

    /// `tcf_action_delete`: in order, up to the first that a filter holds.
    fn delete(&mut self, list: &[(&'static str, u32)], kernel: Kernel) -> Result<(), KernelError> {
        let failed = |errno| refusal(kernel, errno, "Failed to delete TC action");
        for &(kind, index) in list {
            let table = self.table(kind);
            match table.at(index).map(|a| a.bind()) {
                Some(0) => table.remove(index),
                Some(_) => return Err(failed(KernelError::EPERM)),
                // The list named it twice.
                None => return Err(failed(KernelError::ENOENT)),
            }
        }
        Ok(())
    }

    /// `tca_action_flush`: stops at the first that a filter holds.
    fn flush(&mut self, req: &ActionRequest, kernel: Kernel) -> Result<Answer, KernelError> {
        let no = |errno, why| refusal(kernel, errno, why);
        let kind = req.actions.first().and_then(|o| o.str("kind")).and_then(|kind| find(kind, kernel));
        let Some(spec) = kind else {
            return Err(no(KernelError::EINVAL, "Cannot flush unknown TC action"));
        };
        let table = self.table(spec.id);
        let free: Vec<u32> = table.iter().take_while(|a| a.bind() == 0).map(|a| a.index).collect();
        let busy = table.iter().count() > free.len();
        for &index in &free {
            table.remove(index);
        }
        match (busy, free.is_empty()) {
            (true, true) => Err(KernelError::errno(KernelError::EPERM)),
            (true, false) => {
                Ok(Answer { warning: Some("Unable to flush all TC actions".to_owned()), ..Answer::default() })
            }
            (false, _) => Ok(Answer::default()),
        }
    }

    /// RTM_GETACTION of a whole table: its actions numbered from 0. `None` for a kind the kernel does not have, where it
    /// answers nothing at all. `since_ms`: only those used that lately; 0 for all.
    pub fn dump(&self, kind: &str, since_ms: u32, look: Look<'_>, kernel: Kernel) -> Option<Vec<Options>> {
        let spec = find(kind, kernel)?;
        let Some(table) = self.tables.get(spec.id) else { return Some(Vec::new()) };
        let from = look.now.as_ns() - i64::from(since_ms) * 1_000_000;
        let wanted = table.iter().filter(|a| since_ms == 0 || a.used.as_ns() >= from);
        let picked: Vec<u32> = wanted.inspect(|a| a.ask_hardware()).map(|a| a.index).collect();
        Some(self.dump_numbered((0..).zip(picked).map(|(order, index)| (order, spec.id, index)), look.now))
    }
}
