//! The actions of one filter: `struct tcf_exts`.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `tcf_exts_validate_ex`, `tcf_exts_change`, `tcf_exts_dump`.

use super::{Answer, Change, Hit};
use crate::act::{self, ActRef, Actions, Look, SKIP_HW, SKIP_SW};
use crate::qdisc::Cx;
use penstock_model::{Handle, KernelError, Options};
use penstock_packet::Skb;

/// Minor of clsact's place for arriving packets.
const MIN_INGRESS: u16 = 0xfff2;

/// What a filter does besides naming a class. Dropping it lets go of the actions (`tcf_exts_destroy`).
#[derive(Debug, Default)]
pub struct Exts {
    actions: Vec<ActRef>,
    /// Its one action is the old `police`.
    old_police: bool,
}

impl Exts {
    /// `tcf_exts_validate`: makes or binds what the filter's options `police` and `action` name. `flags` are the filter's own
    /// (`skip_hw` 1, `skip_sw` 2).
    ///
    /// # Errors
    /// The kernel's errno and sentence; nothing is held then.
    pub fn validate(options: &Options, flags: u32, change: &mut Change<'_>) -> Result<Exts, KernelError> {
        let filter = (if flags & 1 != 0 { SKIP_HW } else { 0 }) | (if flags & 2 != 0 { SKIP_SW } else { 0 });
        let mut ask = act::Ask {
            kernel: change.device.kernel,
            now: change.now,
            filter: Some(filter),
            replace: change.replace,
            police: false,
            estimator: change.estimator,
            ingress: change.parent.minor() == MIN_INGRESS,
            // A shared block has no qdisc of its own.
            clsact: change.qdisc.major() == Handle::INGRESS.major() || change.qdisc == Handle::UNSPEC,
        };
        if let Some(police) = options.nested("police") {
            ask.police = true;
            let list = [Options::new().with("kind", "police").with("options", police.clone())];
            let actions = change.acts.init(&list, &ask)?.held;
            return Ok(Exts { actions, old_police: true });
        }
        let actions = change.acts.init(options.list("action"), &ask)?.held;
        Ok(Exts { actions, old_police: false })
    }
    /// The same as [`Exts::dump`] for a kind that asks hardware for its counters first, unless `flags` have `skip_hw`.
    pub fn dump_counted(&self, flags: u32, options: &mut Options, look: Look<'_>) {
        if flags & super::SKIP_HW == 0 {
            look.acts.forget_hardware(self.actions.iter());
        }
        self.dump(options, look);
    }
    /// `tcf_exts_exec`: what the actions say of a packet that the filter matched; `None` sends on to the next filter.
    #[inline]
    pub fn exec(&self, hit: Hit, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        if self.actions.is_empty() {
            return Some(Answer { said: act::OK, hit });
        }
        act::exec(&self.actions, hit, skb, cx)
    }
    /// Adds to a filter's dump its actions: `action` as a list, or the old `police`.
    pub fn dump(&self, options: &mut Options, look: Look<'_>) {
        match self.actions.first() {
            None => {}
            Some(police) if self.old_police => {
                options.set("police", look.acts.dump_old(police, look.now).into());
            }
            Some(_) => {
                options.set("action", look.acts.dump_held(self.actions.iter(), look.now).into());
            }
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
    /// The kinds of its actions, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.actions.iter().map(ActRef::kind)
    }
    /// The chains its actions go to.
    pub fn chains<'a>(&'a self, acts: &'a Actions) -> impl Iterator<Item = u32> + 'a {
        self.actions.iter().filter_map(|held| acts.chain_of(held))
    }
}
