//! What kinds share whose classes stand in the kernel's hash: the table, which cbq has too, and all of the class side of drr, hfsc and
//! qfq.
//!
//! Follows: linux v6.12 `net/sched/sch_api.c` `qdisc_class_hash_insert`, `qdisc_class_hash_grow`,
//! `include/net/sch_generic.h` `qdisc_class_hash`; `tc class show` prints in the order of that hash.

use super::unsimulated::Params;
use crate::cls::{BlockId, Filters};
use crate::estimator::Estimator;
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, KernelError, Options, Stats, Time};

/// A class: what every kind has of it, and the kind's own.
pub struct Class<C> {
    /// Its id.
    pub classid: Handle,
    /// The qdisc in it. Inner classes keep one too, which is not shown.
    pub leaf: Node,
    /// Its own filters, where the kind gives a class any.
    pub block: Option<BlockId>,
    /// The kind's own.
    pub own: C,
    /// Filters that point at it.
    pub(super) bound: u32,
    /// Watches its rate.
    pub(super) estimator: Option<Box<Estimator>>,
}

impl<C> Class<C> {
    /// With this qdisc in it, bound by no filter.
    pub fn new(classid: Handle, leaf: Node, block: Option<BlockId>, own: C) -> Class<C> {
        Class { classid, leaf, block, own, bound: 0, estimator: None }
    }
}

impl<C> Class<C> {
    /// Lets the estimator look at counters that are about to change, where it is time to.
    pub fn look(&mut self, now: Time, bytes: u64, packets: u64) {
        if let Some(estimator) = &mut self.estimator
            && estimator.is_due(now)
        {
            estimator.advance(now, bytes, packets);
        }
    }
}

/// Classes by number (which stays) and in the order of the kernel's hash.
pub struct ClassTable<C> {
    slab: Vec<Option<Class<C>>>,
    free: Vec<u32>,
    /// Each bucket's classes, the youngest last: the kernel puts them in front.
    buckets: Vec<Vec<u32>>,
    /// Whether there are ever as many buckets.
    fixed: bool,
    len: usize,
}

impl<C> Default for ClassTable<C> {
    fn default() -> Self {
        ClassTable { slab: Vec::new(), free: Vec::new(), buckets: vec![Vec::new(); 4], fixed: false, len: 0 }
    }
}

impl<C> ClassTable<C> {
    /// With so many buckets, a power of two, for ever.
    pub fn fixed(buckets: usize) -> Self {
        ClassTable { buckets: vec![Vec::new(); buckets], fixed: true, ..ClassTable::default() }
    }
    fn bucket(&self, classid: Handle) -> usize {
        let id = classid.0 ^ classid.0 >> 8;
        (id ^ id >> 4) as usize & (self.buckets.len() - 1)
    }
    /// Shows the qdisc in each class, in the order of a walk.
    pub fn leaves(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        for class in self.walk() {
            visit(self[class].classid, &self[class].leaf);
        }
    }
    /// The same, to change them.
    pub fn leaves_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        let order: Vec<u32> = self.walk().collect();
        for class in order {
            let class = &mut self[class];
            visit(class.classid, &mut class.leaf);
        }
    }
    /// The filters of a class, or of the qdisc itself ([`Handle::UNSPEC`]).
    pub fn block(&self, classid: Handle) -> Option<BlockId> {
        if classid == Handle::UNSPEC {
            return Some(Filters::ROOT);
        }
        self[self.find(classid)?].block
    }
    /// A filter lets go of the class that [`Classful::bind`] gave this number.
    pub fn unbind(&mut self, class: u32) {
        let class = &mut self[class - 1];
        class.bound = class.bound.saturating_sub(1);
    }
    /// The class with this id.
    pub fn find(&self, classid: Handle) -> Option<u32> {
        let bucket = &self.buckets[self.bucket(classid)];
        bucket.iter().rev().copied().find(|&class| self[class].classid == classid)
    }
    /// Enters a class; answers its number.
    pub(super) fn insert(&mut self, class: Class<C>) -> u32 {
        let bucket = self.bucket(class.classid);
        let number = self.free.pop().unwrap_or(self.slab.len() as u32);
        if number as usize == self.slab.len() {
            self.slab.push(None);
        }
        self.slab[number as usize] = Some(class);
        self.buckets[bucket].push(number);
        self.len += 1;
        self.grow();
        number
    }
    /// Twice the buckets once they are more than three quarters full. Each list is turned round by it.
    fn grow(&mut self) {
        if self.fixed || self.len * 4 <= self.buckets.len() * 3 {
            return;
        }
        let wider = vec![Vec::new(); self.buckets.len() * 2];
        for old in std::mem::replace(&mut self.buckets, wider) {
            for number in old.into_iter().rev() {
                let bucket = self.bucket(self[number].classid);
                self.buckets[bucket].push(number);
            }
        }
    }
    /// Takes a class out.
    pub(super) fn remove(&mut self, number: u32) -> Class<C> {
        let bucket = self.bucket(self[number].classid);
        self.buckets[bucket].retain(|&n| n != number);
        self.free.push(number);
        self.len -= 1;
        self.slab[number as usize].take().expect("the class is there")
    }
    /// All of them in the kernel's order.
    pub fn walk(&self) -> impl Iterator<Item = u32> {
        self.buckets.iter().flat_map(|bucket| bucket.iter().rev().copied())
    }
    /// How many numbers are or were in use: all are below.
    pub fn slots(&self) -> u32 {
        self.slab.len() as u32
    }
    /// The class with this number.
    pub fn get(&self, number: u32) -> Option<&Class<C>> {
        self.slab[number as usize].as_ref()
    }
    /// All of them without order, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Class<C>> {
        self.slab.iter_mut().filter_map(Option::as_mut)
    }
    /// Ids and numbers without order, to look for something.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Class<C>)> {
        self.slab.iter().enumerate().filter_map(|(n, class)| Some((n as u32, class.as_ref()?)))
    }
}

impl<C> std::ops::Index<u32> for ClassTable<C> {
    type Output = Class<C>;
    fn index(&self, number: u32) -> &Class<C> {
        self.slab[number as usize].as_ref().expect("the class is there")
    }
}
impl<C> std::ops::IndexMut<u32> for ClassTable<C> {
    fn index_mut(&mut self, number: u32) -> &mut Class<C> {
        self.slab[number as usize].as_mut().expect("the class is there")
    }
}

/// What a request asks of a class.
pub struct ClassChange<'a> {
    /// The parent asked for.
    pub parent: Handle,
    /// The id asked for; [`Handle::UNSPEC`] where none is.
    pub classid: Handle,
    /// The class that has it.
    pub class: Option<u32>,
    /// The words.
    pub options: Option<&'a Options>,
}

/// The kind's own side.
pub trait HashedKind: Send + Sized {
    /// What a class is to it.
    type Class: Send;
    /// Whether the qdisc itself is one of its classes ([`Classful::root_is_class`]).
    const ROOT_IS_CLASS: bool = false;
    /// Its name.
    const ID: &'static str;
    /// [`Classful::no_block`].
    const NO_BLOCK: &'static str = "";
    /// [`Params::change`].
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    fn change(q: &mut Hashed<Self>, options: Option<&Options>) -> Result<(), KernelError>;
    /// [`Params::dump`].
    fn dump(q: &Hashed<Self>) -> Options;
    /// [`Params::xstats`].
    fn xstats(q: &Hashed<Self>) -> Option<Options> {
        let _ = q;
        None
    }
    /// [`Classful::change_class`].
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    fn change_class(
        q: &mut Hashed<Self>,
        change: ClassChange<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Handle, KernelError>;
    /// Whether a class may be deleted; `bound`: filters point at it.
    ///
    /// # Errors
    /// EBUSY with the kind's sentence.
    fn may_delete(q: &Hashed<Self>, class: u32, bound: bool) -> Result<(), KernelError>;
    /// The qdisc in a class lost packets outside of the kind's calls.
    fn reduced(q: &mut Hashed<Self>, class: u32, packets: u32, bytes: u32) {
        let _ = (q, class, packets, bytes);
    }
    /// Another qdisc stands in a class, or the class is about to go.
    fn replaced(q: &mut Hashed<Self>, class: u32) {
        let _ = (q, class);
    }
    /// A class is about to go: nothing of the kind's may lead to it any more.
    fn goes(q: &mut Hashed<Self>, class: u32) {
        let _ = (q, class);
    }
    /// A class's counters.
    fn class_stats(q: &Hashed<Self>, class: u32) -> Stats {
        let _ = (q, class);
        Stats::default()
    }
    /// A class is gone.
    fn deleted(q: &mut Hashed<Self>, own: Self::Class) {
        let _ = (q, own);
    }
    /// Whether there are classes below it.
    fn is_inner(q: &Hashed<Self>, class: u32) -> bool {
        let _ = (q, class);
        false
    }
    /// Whether a filter that hangs on `parent` (`None`: on the qdisc) may point at `class`.
    fn may_bind(q: &Hashed<Self>, parent: Option<u32>, class: u32) -> bool {
        let _ = (q, parent, class);
        true
    }
    /// A class's parent, options and counters of its own.
    fn dump_class(q: &Hashed<Self>, class: u32) -> (Handle, Options, Option<Options>);
    /// The sentence 6.12 adds to a change that succeeded.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
}

/// A qdisc with such classes.
pub struct Hashed<K: HashedKind> {
    /// The device.
    pub device: Device,
    /// The qdisc's handle.
    pub handle: Handle,
    /// The classes.
    pub classes: ClassTable<K::Class>,
    /// The filters.
    pub filters: Filters,
    /// The kind's own.
    pub own: K,
}

impl<K: HashedKind> Hashed<K> {
    /// Without classes.
    pub fn new(init: &Init, own: K) -> Hashed<K> {
        Hashed {
            device: init.device,
            handle: init.handle,
            classes: ClassTable::default(),
            filters: Filters::new(init.handle),
            own,
        }
    }
    /// Makes a class with the default qdisc in it; `filtered`: with filters of its own.
    pub fn add_class(&mut self, classid: Handle, own: K::Class, filtered: bool) -> u32 {
        let leaf = Node::default_pfifo(&self.device, classid);
        let block = filtered.then(|| self.filters.add_block());
        self.classes.insert(Class::new(classid, leaf, block, own))
    }
    /// A refusal in this kernel's words.
    pub fn refuse(&self, errno: i32, sentence: &str) -> KernelError {
        self.device.refusal(errno, sentence)
    }
    fn known(&self, classid: Handle) -> Result<u32, KernelError> {
        self.classes.find(classid).ok_or(KernelError::errno(KernelError::ENOENT))
    }
}

impl<K: HashedKind> Params for Hashed<K> {
    fn kind(&self) -> &'static str {
        K::ID
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        K::change(self, options)
    }
    fn dump(&self) -> Options {
        K::dump(self)
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        K::xstats(self)
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
}

impl<K: HashedKind> Classful for Hashed<K> {
    fn find(&self, classid: Handle) -> bool {
        self.classes.find(classid).is_some()
    }
    fn graft(
        &mut self,
        classid: Handle,
        new: Option<Node>,
        _: &mut Cx<'_>,
    ) -> Result<Option<Node>, KernelError> {
        let class = self.known(classid)?;
        if K::is_inner(self, class) {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let new = new.unwrap_or_else(|| Node::default_pfifo(&self.device, classid).unlisted());
        let old = std::mem::replace(&mut self.classes[class].leaf, new);
        K::replaced(self, class);
        Ok(Some(old))
    }
    fn leaf(&self, classid: Handle) -> Option<&Node> {
        let class = self.classes.find(classid).filter(|&class| !K::is_inner(self, class))?;
        Some(&self.classes[class].leaf)
    }
    fn leaf_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        let class = self.classes.find(classid).filter(|&class| !K::is_inner(self, class))?;
        Some(&mut self.classes[class].leaf)
    }
    fn held_by(&self, classid: Handle) -> Option<&Node> {
        self.classes.find(classid).map(|class| &self.classes[class].leaf)
    }
    fn held_by_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        self.classes.find(classid).map(|class| &mut self.classes[class].leaf)
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        self.classes.leaves(visit);
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        self.classes.leaves_mut(visit);
    }
    fn reduced(&mut self, classid: Handle, packets: u32, bytes: u32) {
        if let Some(class) = self.classes.find(classid) {
            K::reduced(self, class, packets, bytes);
        }
    }
    fn change_class(
        &mut self,
        parent: Handle,
        classid: Handle,
        options: Option<&Options>,
        cx: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let class = self.classes.find(classid).filter(|_| classid != Handle::UNSPEC);
        K::change_class(self, ClassChange { parent, classid, class, options }, cx)
    }
    fn estimate(&mut self, classid: Handle, spec: (i8, u8), cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let class = self.known(classid)?;
        let stats = K::class_stats(self, class);
        let mut new = Estimator::new(self.device.kernel, spec, cx.now, stats.bytes, stats.packets)?;
        if let Some(old) = &self.classes[class].estimator {
            new = new.continuing(old);
        }
        self.classes[class].estimator = Some(Box::new(new));
        Ok(())
    }
    fn take_warning(&mut self) -> Option<String> {
        self.own.take_warning()
    }
    fn delete_class(&mut self, classid: Handle, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let class = self.known(classid)?;
        K::may_delete(self, class, self.classes[class].bound > 0)?;
        let leaf = &mut self.classes[class].leaf;
        let (packets, bytes) = leaf.told();
        leaf.reset(cx);
        if packets > 0 || bytes > 0 {
            K::reduced(self, class, packets, bytes);
        }
        K::replaced(self, class);
        K::goes(self, class);
        let gone = self.classes.remove(class);
        if let Some(block) = gone.block {
            let mut filters = std::mem::take(&mut self.filters);
            filters.remove_block(block, self);
            self.filters = filters;
        }
        K::deleted(self, gone.own);
        Ok(())
    }
    fn walk(&self, now: Time, visit: &mut dyn FnMut(ClassDump)) {
        for number in self.classes.walk() {
            let class = &self.classes[number];
            let (parent, mut options, xstats) = K::dump_class(self, number);
            if let Some(estimator) = &class.estimator {
                options.set("estimator", estimator.dump().into());
            }
            let leaf = Some(class.leaf.handle).filter(|&h| h != Handle::UNSPEC);
            let stats = K::class_stats(self, number);
            let rate = class.estimator.as_ref().map(|e| e.rate_at(now, stats.bytes, stats.packets));
            visit(ClassDump {
                kind: K::ID,
                classid: class.classid,
                parent,
                leaf: leaf.filter(|_| !K::is_inner(self, number)),
                options,
                counters: Counters::All,
                stats: Stats { rate, ..stats },
                xstats,
            });
        }
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        self.classes.block(classid)
    }
    fn no_block(&self) -> &'static str {
        K::NO_BLOCK
    }
    fn root_is_class(&self) -> bool {
        K::ROOT_IS_CLASS
    }
    fn bind(&mut self, parent: Handle, classid: Handle) -> u32 {
        let parent = if parent.minor() == 0 { None } else { self.classes.find(parent) };
        match self.classes.find(classid).filter(|&class| K::may_bind(self, parent, class)) {
            Some(class) => {
                self.classes[class].bound += 1;
                class + 1
            }
            None => 0,
        }
    }
    fn unbind(&mut self, class: u32) {
        self.classes.unbind(class);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, device, qdisc};
    use crate::tree::Tree;
    use penstock_model::rtnetlink::{ClassRequest, Verb};
    use penstock_model::{Handle, Kernel, Options, Time};

    #[test]
    fn classes_are_shown_in_the_order_of_the_hash() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        tree.qdisc(&qdisc("add root handle 1: drr"), &mut bench.cx(0)).unwrap();
        for minor in [0x1, 0x10, 0x5, 0x22, 0x9, 0x3] {
            let req = ClassRequest {
                verb: Verb::Add,
                classid: Handle::new(1, minor),
                parent: Handle::new(1, 0),
                kind: Some("drr".to_owned()),
                options: Some(Options::new()),
                estimator: None,
            };
            tree.class(&req, &mut bench.cx(0)).unwrap();
        }
        let order: Vec<u16> = tree.dump_classes(Time::ZERO).iter().map(|d| d.classid.minor()).collect();
        // Seen on 6.12.117.
        assert_eq!(order, [0x22, 0x9, 0x1, 0x10, 0x3, 0x5]);
        let shown: Vec<u16> = tree.dump_invisible(Time::ZERO).iter().map(|d| d.parent.minor()).collect();
        assert_eq!(shown, [0xffff, 0x3, 0x9, 0x22, 0x5, 0x10, 0x1]);
    }
}
