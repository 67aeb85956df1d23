//! Blocks of filters that several qdiscs share, by number.
//!
//! A machine keeps one [`Blocks`], which its devices' trees know; a block is there as long as a qdisc holds it.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `tcf_block_get_ext`, `tcf_block_refcnt_get`, `struct tcf_net`.

use super::block::{Dumped, Select};
use super::request::check_prio;
use super::{Filters, Shared};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::rtnetlink::{ChainDump, FilterDump, FilterRequest};
use penstock_model::{Handle, Kernel, KernelError, PschedClock};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

type Held = Mutex<Filters>;

/// A machine's shared blocks. Clones speak of the same ones.
#[derive(Clone, Default)]
pub struct Blocks(Arc<Mutex<BTreeMap<u32, Weak<Held>>>>);

/// A shared block, held by a qdisc.
#[derive(Clone)]
pub struct SharedBlock {
    index: u32,
    filters: Arc<Held>,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Blocks")
    }
}

impl SharedBlock {
    /// Its number.
    pub fn index(&self) -> u32 {
        self.index
    }
    /// Its filters.
    pub fn filters(&self) -> MutexGuard<'_, Filters> {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocks {
    /// None.
    pub fn new() -> Blocks {
        Blocks::default()
    }
    fn table(&self) -> MutexGuard<'_, BTreeMap<u32, Weak<Held>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The block with this number, where a qdisc holds it.
    pub fn find(&self, index: u32) -> Option<SharedBlock> {
        let filters = self.table().get(&index)?.upgrade()?;
        Some(SharedBlock { index, filters })
    }
    /// The same, made where there is none.
    pub fn hold(&self, index: u32) -> SharedBlock {
        self.find(index).unwrap_or_else(|| {
            let filters = Arc::new(Mutex::new(Filters::of_block(index)));
            let mut table = self.table();
            table.retain(|_, held| held.strong_count() > 0);
            table.insert(index, Arc::downgrade(&filters));
            SharedBlock { index, filters }
        })
    }
    fn asked(&self, index: u32, device: &Device) -> Result<SharedBlock, KernelError> {
        let why = "Block of given index was not found";
        self.find(index).ok_or_else(|| device.refusal(KernelError::EINVAL, why))
    }

    /// What Linux looks at before it looks for the device or the block that a request of a filter names: its priority.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn check(req: &FilterRequest, kernel: Kernel) -> Result<(), KernelError> {
        check_prio(req, &no_device(kernel))
    }

    /// Executes RTM_NEWTFILTER or RTM_DELTFILTER on the block that the request names.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn filter(&self, req: &FilterRequest, kernel: Kernel, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let device = no_device(kernel);
        check_prio(req, &device)?;
        let block = self.asked(req.block, &device)?;
        block.filters().request(Filters::ROOT, req, &device, &mut NoClasses, cx)
    }
    /// RTM_GETTFILTER of one filter.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn get(
        &self,
        req: &FilterRequest,
        kernel: Kernel,
        look: Look<'_>,
    ) -> Result<FilterDump, KernelError> {
        let device = no_device(kernel);
        check_prio(req, &device)?;
        self.asked(req.block, &device)?.filters().get(Filters::ROOT, req, &device, look)
    }
    /// Executes RTM_NEWCHAIN or RTM_DELCHAIN.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn chain(&self, req: &FilterRequest, kernel: Kernel) -> Result<(), KernelError> {
        let device = no_device(kernel);
        let block = self.asked(req.block, &device)?;
        block.filters().chain_request(Filters::ROOT, req, &device, &mut NoClasses)
    }
    /// RTM_GETCHAIN of one chain.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn get_chain(&self, req: &FilterRequest, kernel: Kernel) -> Result<ChainDump, KernelError> {
        let device = no_device(kernel);
        self.asked(req.block, &device)?.filters().get_chain(Filters::ROOT, req, &device)
    }
    /// All filters of a block; none of one that is not there.
    pub fn dump_filters(&self, index: u32, select: Select, look: Look<'_>) -> Dumped {
        self.find(index).map_or((Vec::new(), None), |b| b.filters().dump(Filters::ROOT, select, look))
    }
    /// All chains of a block.
    pub fn dump_chains(&self, index: u32, chain: Option<u32>) -> Vec<ChainDump> {
        self.find(index).map_or(Vec::new(), |b| b.filters().dump_chains(Filters::ROOT, chain))
    }
}

impl Shared {
    /// Whether these are the filters of a shared block, which no qdisc's classes can be named in.
    pub fn is_block(&self) -> bool {
        self.block != 0
    }
}

/// A request to a shared block names no device.
fn no_device(kernel: Kernel) -> Device {
    Device {
        ifindex: 0,
        mtu: 0,
        hard_header_len: 0,
        tx_queue_len: 0,
        tx_queues: 1,
        speed_mbit: None,
        kernel,
        clock: PschedClock::default(),
        hz: kernel.hz(),
    }
}

/// What stands for the qdisc where there is none: nothing is bound.
struct NoClasses;

impl Classful for NoClasses {
    fn find(&self, _: Handle) -> bool {
        false
    }
}
