//! Opening, carrying and closing.

mod pair;
use pair::*;
use penstock_model::{Kernel, Span};
use penstock_tcp::{Config, State};

#[test]
fn every_stack_talks_to_every_other() {
    let stacks = [Config::linux(Kernel::V6_12), Config::linux(Kernel::V2_6_35), Config::windows_xp()];
    for a in &stacks {
        for b in &stacks {
            let mut p = Pair::new(a, b);
            let took = p.transfer(1_000_000);
            assert_eq!(p.apps[B].read, 1_000_000);
            assert_eq!((p.a().state(), p.b().state()), (State::TimeWait, State::Closed));
            assert!(took < Span::from_secs(20), "{:?} {:?} {took}", a.stack, b.stack);
            assert_eq!(p.again().len(), 0, "{:?} {:?}", a.stack, b.stack);
        }
    }
}
