//! Parameters of the controllers' modules: `/sys/module/tcp_NAME/parameters`.
//!
//! Follows: linux v6.12 `module_param` in net/ipv4/tcp_*.c.
//! Differs: a connection keeps what was set when it was opened; on Linux a change reaches those that are open too.

use super::{Algorithm, Build, CongestionControl};
use penstock_model::Kernel;

/// A parameter of a controller's module.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is where nobody has set it.
    pub default: i64,
    /// Whether it can be written below `/sys/module`; else only when the module is loaded.
    pub writable: bool,
}

impl Parameter {
    pub(super) const fn new(name: &'static str, default: i64) -> Parameter {
        Parameter { name, default, writable: true }
    }
    pub(super) const fn read_only(name: &'static str, default: i64) -> Parameter {
        Parameter { name, default, writable: false }
    }
}

/// What parameters are set to: those that differ from their defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parameters(Vec<(&'static str, &'static str, i64)>);

impl Parameters {
    /// Sets one; answers whether the controller has it.
    pub fn set(&mut self, of: &Algorithm, name: &str, value: i64) -> bool {
        let Some(p) = of.parameters.iter().find(|p| p.name == name) else { return false };
        self.0.retain(|s| (s.0, s.1) != (of.name, p.name));
        if value != p.default {
            self.0.push((of.name, p.name, value));
            self.0.sort_unstable();
        }
        true
    }
    /// What one is set to; 0 for one that the controller has not.
    pub fn of(&self, of: &Algorithm, name: &str) -> i64 {
        let set = self.0.iter().find(|s| (s.0, s.1) == (of.name, name)).map(|s| s.2);
        set.or_else(|| of.parameters.iter().find(|p| p.name == name).map(|p| p.default)).unwrap_or(0)
    }
    /// These with others set.
    #[must_use]
    pub fn with(mut self, of: &Algorithm, values: &[(&str, i64)]) -> Parameters {
        for &(name, value) in values {
            self.set(of, name, value);
        }
        self
    }
    /// A controller for one connection.
    pub fn build(&self, of: &Algorithm, kernel: Kernel) -> Box<dyn CongestionControl> {
        (of.build)(&Build { kernel, parameters: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{ALGORITHMS, bic, htcp};

    #[test]
    fn what_is_set_back_is_forgotten() {
        let mut p = Parameters::default();
        assert!(p.set(&bic::ALGORITHM, "beta", 512));
        assert!(!p.set(&bic::ALGORITHM, "gamma", 1) && !p.set(&htcp::ALGORITHM, "beta", 1));
        assert_eq!((p.of(&bic::ALGORITHM, "beta"), p.of(&bic::ALGORITHM, "smooth_part")), (512, 20));
        p.set(&bic::ALGORITHM, "beta", 819);
        assert_eq!(p, Parameters::default());
    }

    #[test]
    fn all_are_in_order() {
        assert!(ALGORITHMS.is_sorted_by_key(|a| a.name));
        for a in ALGORITHMS {
            assert!(a.parameters.is_sorted_by_key(|p| p.name), "{}", a.name);
        }
    }
}
