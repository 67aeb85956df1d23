//! `cubic`.

use super::{Algorithm, CongestionControl};
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm { name: "cubic", about: "cubic growth (RFC 9438)", build };

fn build(_: Kernel) -> Box<dyn CongestionControl> {
    Box::new(super::reno::Reno)
}
