//! `ets`: enhanced transmission selection of 802.1Qaz, strict bands before bands that share by quanta.
//!
//! Follows: linux v6.12 `net/sched/sch_ets.c`, configuration only.
//! Differs: packets are not carried yet; no hardware offload.

use super::KindSpec;
use super::bands::{Banded, Bands};
use super::unsimulated::{Params, Unsimulated};
use crate::cls::Filters;
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "ets",
    about: "strict bands first, then bands that share by quanta",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Fixed,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// `TCQ_ETS_MAX_BANDS`.
const BANDS_MAX: u32 = 16;
/// What a quantum is kept within, bytes.
const QUANTUM_RANGE: (u32, u32) = (256, 1 << 20);

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut ets = Ets {
        bands: Bands::new(init),
        filters: Filters::new(init.handle),
        strict: 0,
        quanta: Vec::new(),
        priomap: [0; 16],
    };
    ets.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(ets)))
}

/// The qdisc.
struct Ets {
    bands: Bands,
    filters: Filters,
    /// How many bands are strict.
    strict: usize,
    /// Bytes a turn, by band; 0 in strict ones.
    quanta: Vec<u32>,
    /// Band by priority.
    priomap: [u8; 16],
}

impl Params for Ets {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let no = |sentence: &str| Err(KernelError::new(KernelError::EINVAL, sentence));
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let Some(bands) = options.u32("bands") else {
            return no("sch_ets: Number of bands is a required argument");
        };
        if !(1..=BANDS_MAX).contains(&bands) {
            return no("sch_ets: Invalid number of bands");
        }
        let strict = options.u32("strict").unwrap_or(0);
        if strict > bands {
            return no("sch_ets: Invalid number of strict bands");
        }
        // Unless it is said, traffic goes to the last band.
        let mut priomap = [bands as u8 - 1; 16];
        for (prio, &band) in options.bytes("priomap").unwrap_or(&[]).iter().enumerate() {
            if prio >= priomap.len() {
                return no("sch_ets: Too many priorities in ETS priomap");
            }
            if u32::from(band) >= bands {
                return no("sch_ets: Invalid band number in ETS priomap");
            }
            priomap[prio] = band;
        }
        let fitting = |quantum: u32| quantum.clamp(QUANTUM_RANGE.0, QUANTUM_RANGE.1);
        let default = fitting(self.bands.device.psched_mtu());
        let mut quanta = vec![0; strict as usize];
        for given in options.list("quanta") {
            if quanta.len() as u32 >= bands {
                return no("sch_ets: ETS quanta has more values than bands");
            }
            quanta.push(fitting(given.u32("quantum").unwrap_or(0)));
        }
        quanta.resize(bands as usize, default);
        self.bands.resize(bands as usize, cx);
        (self.strict, self.quanta, self.priomap) = (strict as usize, quanta, priomap);
        Ok(())
    }
    fn dump(&self) -> Options {
        let mut options = Options::new().with("bands", self.quanta.len() as u32);
        if self.strict > 0 {
            options = options.with("strict", self.strict as u32);
        }
        if self.quanta.len() > self.strict {
            let shared = self.quanta[self.strict..].iter();
            options = options
                .with("quanta", shared.map(|&q| Options::new().with("quantum", q)).collect::<Vec<_>>());
        }
        options.with("priomap", self.priomap.to_vec())
    }
    super::bands::stands_on_bands!();
}

impl Banded for Ets {
    super::bands::has_bands!();
    /// A class's quantum can be changed; classes come and go with the qdisc's bands.
    fn change_class(&mut self, classid: Handle, options: Option<&Options>) -> Result<Handle, KernelError> {
        let Some(band) = self.bands.band(classid) else {
            let sentence = "Fine-grained class addition and removal is not supported";
            return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
        };
        let Some(options) = options else {
            let sentence = "ETS options are required for this operation";
            return Err(KernelError::new(KernelError::EINVAL, sentence));
        };
        let Some(quantum) = options.u32("quantum") else { return Ok(classid) };
        if band < self.strict {
            let sentence = "Strict bands do not have a configurable quantum";
            return Err(KernelError::new(KernelError::EINVAL, sentence));
        }
        self.quanta[band] = quantum.clamp(QUANTUM_RANGE.0, QUANTUM_RANGE.1);
        Ok(classid)
    }
    fn dump_band(&self, band: usize) -> (Handle, Options) {
        let options = match band < self.strict {
            true => Options::new(),
            false => Options::new().with("quantum", self.quanta[band]),
        };
        (Handle::ROOT, options)
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn why_no_block(&self) -> &'static str {
        "ETS classid must be zero"
    }
}
