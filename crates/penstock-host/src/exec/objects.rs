//! Objects of eBPF that a command of tc loads.
//!
//! Follows: libbpf 1.1.2 as iproute2 6.1.0 uses it: before its first program a tc tries three of its own, to learn what the kernel can, and each takes
//! an id (`probe_kern_prog_name` and its like; seen on 6.12.117).

use super::Files;
use penstock_lang::tc::Objects;
use penstock_model::{Kernel, Options};
use penstock_sched::ebpf;
use std::cell::{Cell, RefCell};

/// Programs that tc itself loads before it loads one.
const TRIED: u32 = 3;

/// The files that are lent to one command, and the kernel that loads programs from them.
pub struct Loading<'a> {
    files: RefCell<&'a mut dyn Files>,
    kernel: Kernel,
    /// The id of the program that was loaded last.
    last: Cell<u32>,
    tried: Cell<bool>,
}

impl<'a> Loading<'a> {
    /// For one command on a machine whose programs have ids up to `last`.
    pub fn new(files: &'a mut dyn Files, kernel: Kernel, last: u32) -> Loading<'a> {
        Loading { files: RefCell::new(files), kernel, last: Cell::new(last), tried: Cell::new(false) }
    }
    /// The same for a further line of a batch, which is the same tc: whether it has tried is known.
    pub(super) fn tried(self, tried: bool) -> Loading<'a> {
        self.tried.set(tried);
        self
    }
    pub(super) fn has_tried(&self) -> bool {
        self.tried.get()
    }
    /// The id that was given last.
    pub fn loaded(&self) -> u32 {
        self.last.get()
    }
}

impl Objects for Loading<'_> {
    fn read(&self, path: &str) -> Option<String> {
        self.files.borrow_mut().read(path).ok()
    }
    fn load(&self, options: &Options) -> Result<u32, (i32, String)> {
        if !self.tried.replace(true) {
            self.last.set(self.last.get() + TRIED);
        }
        ebpf::check(options, self.kernel).map_err(|why| (why.errno, why.log))?;
        self.last.set(self.last.get() + 1);
        Ok(self.last.get())
    }
}
