//! `flower`: fields of the headers, with masks.
//!
//! Follows: linux v6.12 `net/sched/cls_flower.c` `fl_change`, `fl_classify`, `fl_dump`, `fl_tmplt_create`.
//! Differs: no packet here is of PPPoE, CFM, L2TP, ESP or AH: what asks for those finds 0.

mod key;
mod masks;
mod tunnel;

use super::list::List;
use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target, hardware_flags};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use key::Key;
use masks::Masks;
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "flower",
    about: "fields of the headers, with masks",
    kernels: &Kernel::LIVING,
    simulated: true,
    build: |_, _, _| Box::new(Flower { filters: List::new(), masks: Masks::default() }),
};

/// What the filters of a chain may look at: `struct fl_flow_tmplt`.
#[derive(Clone, Debug)]
pub struct Template(Key);

impl Template {
    /// `fl_tmplt_create`.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn new(options: Option<&Options>, device: &Device) -> Result<Template, KernelError> {
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        Ok(Template(Key::new(options, device)?))
    }
    /// `fl_tmplt_dump`.
    pub fn dump(&self) -> Options {
        let mut o = Options::new();
        self.0.dump(&mut o);
        o
    }
}

/// A priority of flower filters.
struct Flower {
    filters: List<Filter>,
    /// What its filters look for behind each mask.
    masks: Masks,
}

struct Filter {
    key: Key,
    flags: u32,
    target: Target,
    exts: Exts,
}

impl Drop for Flower {
    /// `fl_destroy`: a mask goes before the last of its filters.
    fn drop(&mut self) {
        while let Some(handle) = self.masks.first() {
            let Some(gone) = self.filters.remove(handle) else { return };
            self.masks.remove(&gone.key.masked().1, handle);
        }
    }
}

impl Classifier for Flower {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// `fl_classify`: the first mask behind which a filter finds what it looks for decides, whatever its actions say.
    fn classify(&self, _: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let filter = self.filters.get(self.masks.find(skb)?)?;
        filter.exts.exec(filter.target.0, skb, cx)
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.filters.has(handle)
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        let o = change.options.ok_or_else(einval)?;
        let flags = hardware_flags(o.u32("flags").unwrap_or(0))?;
        let exts = Exts::validate(o, flags.asked(), &mut change)?;
        let key = Key::new(o, change.device)?;
        if change.template.is_some_and(|t| !key.fits(&t.0)) {
            let why = "cls_flower: Mask does not fit the template";
            return Err(change.device.refusal(KernelError::EINVAL, why));
        }
        let (masked, mask) = key.masked();
        if mask.masks().any(|(name, _)| name.starts_with("ct_")) {
            change.acts.looks_at_connections();
        }
        let old = self.filters.get(change.handle).map(|f| f.key.masked());
        if old.as_ref().is_some_and(|(_, old)| *old != mask) {
            return Err(einval());
        }
        let same = old.as_ref().is_some_and(|(old, _)| *old == masked);
        if !same && self.masks.has(&mask, &masked) {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        let flags = flags.in_software()?;
        let handle = if change.handle == 0 { self.filters.free_handle() } else { change.handle };
        let mut target = Target::default();
        if let Some(classid) = o.u32("classid") {
            target.bind(change.parent, Handle(classid), change.classes);
        }
        if let Some(mut gone) = self.filters.insert(handle, Filter { key, flags, target, exts }) {
            gone.target.unbind(change.classes);
        }
        let shrinks = change.device.kernel >= Kernel::V7_2;
        self.masks.put(mask, masked, handle, || shrinks.then(|| change.acts.shrinking()));
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        handle: u32,
        _: &Device,
        classes: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        if let Some(mut gone) = self.filters.remove(handle) {
            gone.target.unbind(classes);
            self.masks.remove(&gone.key.masked().1, handle);
        }
        Ok(self.filters.is_empty())
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for (handle, f) in self.filters.by_handle() {
            let mut o = Options::new();
            f.target.dump(&mut o);
            f.key.dump(&mut o);
            o.set("flags", f.flags.into());
            o.set("in_hw_count", 0u32.into());
            f.exts.dump_counted(f.flags, &mut o, look);
            visit(handle, Some(o));
        }
    }
    fn terse(&self, options: Option<Options>) -> Option<Options> {
        let full = options?;
        let mut o = Options::new();
        for name in ["flags", "action"] {
            if let Some(value) = full.value(name) {
                o.set(name, value.clone());
            }
        }
        Some(o)
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.filters.iter().for_each(|(_, f)| visit(&f.exts));
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        self.filters.iter_mut().for_each(|f| visit(&mut f.target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::device;

    fn key(o: Options) -> Result<Key, String> {
        Key::new(&o, &device(Kernel::V6_12)).map_err(|e| e.extack)
    }
    fn ip() -> Options {
        Options::new().with("eth_type", 0x0800u32)
    }
    fn shown(o: Options) -> Options {
        let mut dump = Options::new();
        key(o).unwrap().dump(&mut dump);
        dump
    }

    #[test]
    fn what_the_protocol_has_not_is_left_out() {
        let o = ip().with("ip_proto", 6u32).with("tcp_dst", 80u32);
        assert_eq!(shown(o.clone()).u32("tcp_dst_mask"), Some(0xffff));
        // Without ip_proto a port means nothing.
        assert!(!shown(ip().with("tcp_dst", 80u32)).has("tcp_dst"));
        assert_eq!(shown(o).u32("eth_type"), Some(0x0800));
        let arp = Options::new().with("eth_type", 0x0806u32).with("arp_op", 1u32);
        assert_eq!(shown(arp).u32("arp_op"), Some(1));
    }

    #[test]
    fn masks_decide_what_is_the_same() {
        let to = |last: u8, mask: u8| {
            let address = ip().with("ipv4_dst", vec![10u8, 0, 0, last]);
            key(address.with("ipv4_dst_mask", vec![255u8, 255, 255, mask])).unwrap().masked()
        };
        assert_eq!(to(1, 0), to(2, 0));
        assert_ne!(to(1, 255).0, to(2, 255).0);
        assert_eq!(to(1, 255).1, to(2, 255).1);
        let template = key(ip().with("ipv4_dst", vec![0u8; 4])).unwrap();
        assert!(key(ip().with("ipv4_dst", vec![1u8; 4])).unwrap().fits(&template));
        assert!(!key(ip().with("ip_proto", 6u32)).unwrap().fits(&template));
    }

    #[test]
    fn the_kernels_refusals() {
        let range = ip().with("ip_proto", 6u32).with("port_dst_min", 10u32);
        let both = "Both min and max destination ports must be specified";
        assert_eq!(key(range.clone()), Err(both.to_owned()));
        let order = "Invalid destination port range (min must be strictly smaller than max)";
        assert_eq!(key(range.with("port_dst_max", 10u32)), Err(order.to_owned()));
        let state = |state: u32| Options::new().with("ct_state", state).with("ct_state_mask", 0x3fu32);
        assert_eq!(key(state(1)), Err("no trk, so no other flag can be set".to_owned()));
        assert_eq!(key(state(11)), Err("new and est are mutually exclusive".to_owned()));
        assert_eq!(key(ip().with("spi", 1u32)), Err("Protocol must be either ESP or AH".to_owned()));
    }

    #[test]
    fn label_stacks_of_one_entry_have_the_old_form() {
        let mpls = |list: Vec<Options>| Options::new().with("eth_type", 0x8847u32).with("mpls", list);
        let entry = |depth: u32| Options::new().with("depth", depth).with("label", 100u32);
        assert_eq!(shown(mpls(vec![entry(1)])).u32("mpls_label"), Some(100));
        assert_eq!(shown(mpls(vec![entry(1), entry(3)])).list("mpls").len(), 2);
        assert_eq!(key(mpls(vec![entry(8)])), Err("Invalid MPLS depth".to_owned()));
    }
}
