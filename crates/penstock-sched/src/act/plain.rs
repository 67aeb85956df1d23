//! Parameters that are dumped as they were given, and what hardware could do of them.

use super::{Act, Offload};
use penstock_model::{Options, Time};

/// The parameters of a kind that keeps its options.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub shown: Options,
    pub offload: Offload,
}

impl Act for Plain {
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, _: i32) -> Offload {
        self.offload
    }
}

/// The options of these names.
pub(super) fn pick(options: &Options, names: &[&'static str]) -> Options {
    let mut picked = Options::new();
    for &name in names {
        if let Some(value) = options.value(name) {
            picked.set(name, value.clone());
        }
    }
    picked
}
