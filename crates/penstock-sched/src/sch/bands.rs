//! What kinds share whose classes are numbered from 1 and cannot be made or deleted one by one: ets, multiq, mq,
//! mqprio, cbs and taprio.

use crate::cls::{BlockId, Filters};
use crate::node::{Node, Shown};
use crate::qdisc::{Classful, Cx, Device, Init};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, KernelError, Options, Stats, Time};

/// The classes: each a qdisc.
pub struct Bands {
    /// The device.
    pub device: Device,
    /// The qdisc's handle.
    pub handle: Handle,
    /// What is in each.
    pub nodes: Vec<Node>,
}

impl Bands {
    /// None yet.
    pub fn new(init: &Init) -> Bands {
        Bands { device: init.device, handle: init.handle, nodes: Vec::new() }
    }
    /// The id of a band from 0.
    pub fn class(&self, band: usize) -> Handle {
        Handle::new(self.handle.major(), (band + 1) as u16)
    }
    /// A pfifo for a band, not shown.
    pub fn pfifo(&self, band: usize) -> Node {
        Node::default_pfifo(&self.device, self.class(band))
    }
    /// A pfifo_fast for a band, shown: what each transmit queue gets.
    pub fn queue_default(&self, band: usize) -> Node {
        let init = Init { device: self.device, handle: Handle::UNSPEC, parent: self.class(band) };
        let alone = Init { parent: Handle::ROOT, ..init };
        let mut node = Node::new(&init, Box::new(super::pfifo_fast::PfifoFast::new(&alone)));
        node.shown = Shown::Always;
        node
    }
    /// The band of a class.
    pub fn band(&self, classid: Handle) -> Option<usize> {
        let band = usize::from(classid.minor()).checked_sub(1)?;
        (band < self.nodes.len()).then_some(band)
    }
    /// Has exactly `count` of them: the kind's pfifo in new ones, the rest emptied and gone.
    pub fn resize(&mut self, count: usize, cx: &mut Cx<'_>) {
        for mut gone in self.nodes.drain(count.min(self.nodes.len())..) {
            gone.reset(cx);
        }
        while self.nodes.len() < count {
            self.nodes.push(self.pfifo(self.nodes.len()));
        }
    }
}

/// The part of [`Banded`] that is the same of all kinds with a field `bands`.
macro_rules! has_bands {
    () => {
        fn id(&self) -> &'static str {
            SPEC.id
        }
        fn bands(&self) -> &Bands {
            &self.bands
        }
        fn bands_mut(&mut self) -> &mut Bands {
            &mut self.bands
        }
    };
}
pub(super) use has_bands;

/// A kind with such classes.
pub trait Banded: Send {
    /// Its name.
    fn id(&self) -> &'static str;
    /// The classes.
    fn bands(&self) -> &Bands;
    /// The classes.
    fn bands_mut(&mut self) -> &mut Bands;
    /// The band of a class.
    fn band(&self, classid: Handle) -> Option<usize> {
        self.bands().band(classid)
    }
    /// Whether there is such a class although no qdisc is in it.
    fn has_more(&self, classid: Handle) -> bool {
        let _ = classid;
        false
    }
    /// What stands in a band whose qdisc was deleted.
    fn vacant(&self, band: usize) -> Node {
        self.bands().pfifo(band)
    }
    /// [`Classful::change_class`].
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    fn change_class(&mut self, classid: Handle, options: Option<&Options>) -> Result<Handle, KernelError> {
        let _ = (classid, options);
        Err(KernelError::errno(KernelError::EOPNOTSUPP))
    }
    /// [`Classful::reduced`], of a band.
    fn reduced(&mut self, band: usize, packets: u32, bytes: u32) {
        let _ = (band, packets, bytes);
    }
    /// [`Classful::counts_refusals`].
    fn has_refusals(&self) -> bool {
        true
    }
    /// Which counters of a band the kernel gives.
    fn counters(&self) -> Counters {
        Counters::All
    }
    /// Parent and options of a band.
    fn dump_band(&self, band: usize) -> (Handle, Options);
    /// Classes that stand before the bands in a dump.
    fn walk_before(&self, visit: &mut dyn FnMut(ClassDump)) {
        let _ = visit;
    }
    /// The filters, where it takes any.
    fn filters(&self) -> Option<&Filters> {
        None
    }
    /// The same, to change them.
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        None
    }
    /// [`Classful::no_block`].
    fn why_no_block(&self) -> &'static str {
        ""
    }
    /// [`Classful::stops_device`].
    fn stops_device(&self) -> bool {
        self.is_queue_root()
    }
    /// [`Classful::has_own_queues`].
    fn has_own_queues(&self) -> bool {
        false
    }
    /// [`Classful::no_graft`].
    fn no_graft(&self) -> Option<&'static str> {
        None
    }
    /// Whether a class may have any qdisc with a size table: the kernel's multi-queue roots.
    fn is_queue_root(&self) -> bool {
        false
    }
}

impl<T: Banded> Classful for T {
    fn find(&self, classid: Handle) -> bool {
        self.band(classid).is_some() || self.has_more(classid)
    }
    fn graft(
        &mut self,
        classid: Handle,
        new: Option<Node>,
        _: &mut Cx<'_>,
    ) -> Result<Option<Node>, KernelError> {
        let band = self.band(classid).ok_or(KernelError::errno(KernelError::EINVAL))?;
        let mut new = new.unwrap_or_else(|| self.vacant(band));
        if self.is_queue_root() {
            new.stands_alone();
        }
        Ok(Some(std::mem::replace(&mut self.bands_mut().nodes[band], new)))
    }
    fn leaf(&self, classid: Handle) -> Option<&Node> {
        self.bands().nodes.get(self.band(classid)?)
    }
    fn leaf_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        let band = self.band(classid)?;
        self.bands_mut().nodes.get_mut(band)
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        let bands = self.bands();
        for (band, node) in bands.nodes.iter().enumerate() {
            visit(bands.class(band), node);
        }
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        let major = self.bands().handle.major();
        for (band, node) in self.bands_mut().nodes.iter_mut().enumerate() {
            visit(Handle::new(major, band as u16 + 1), node);
        }
    }
    fn reduced(&mut self, classid: Handle, packets: u32, bytes: u32) {
        if let Some(band) = self.band(classid) {
            Banded::reduced(self, band, packets, bytes);
        }
    }
    fn change_class(
        &mut self,
        _: Handle,
        classid: Handle,
        options: Option<&Options>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        Banded::change_class(self, classid, options)
    }
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        self.walk_before(visit);
        let bands = self.bands();
        for (band, node) in bands.nodes.iter().enumerate() {
            let (parent, options) = self.dump_band(band);
            visit(ClassDump {
                kind: self.id(),
                classid: bands.class(band),
                parent,
                leaf: Some(node.handle).filter(|&h| h != Handle::UNSPEC),
                options,
                counters: self.counters(),
                stats: Stats { rate: None, ..node.stats() },
                xstats: None,
            });
        }
    }
    fn filters(&self) -> Option<&Filters> {
        Banded::filters(self)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Banded::filters_mut(self)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        (classid == Handle::UNSPEC && Banded::filters(self).is_some()).then_some(Filters::ROOT)
    }
    fn no_block(&self) -> &'static str {
        self.why_no_block()
    }
    fn bind(&mut self, _: Handle, classid: Handle) -> u32 {
        self.band(classid).map_or(0, |band| band as u32 + 1)
    }
    fn counts_refusals(&self) -> bool {
        self.has_refusals()
    }
    fn queue_root(&self) -> bool {
        self.is_queue_root()
    }
    fn stops_device(&self) -> bool {
        Banded::stops_device(self)
    }
    fn has_own_queues(&self) -> bool {
        Banded::has_own_queues(self)
    }
    fn no_graft(&self) -> Option<&'static str> {
        Banded::no_graft(self)
    }
}
