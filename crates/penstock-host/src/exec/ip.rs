//! `ip`, `ifconfig` and `route`: not yet among the programs of this machine.

use super::Ran;
use crate::{Host, Output};
use penstock_lang::token::Line;
use penstock_model::Time;

impl Host {
    pub(super) fn ip(&mut self, _line: &Line, _now: Time) -> Ran {
        Output::fail("bash: ip: command not found\n", 127, "")
    }
    pub(super) fn ifconfig(&mut self, _line: &Line, _now: Time) -> Ran {
        Output::fail("bash: ifconfig: command not found\n", 127, "")
    }
    pub(super) fn route(&mut self, _line: &Line) -> Ran {
        Output::fail("bash: route: command not found\n", 127, "")
    }
}
