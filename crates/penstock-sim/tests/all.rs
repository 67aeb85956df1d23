//! The tests of the simulator in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-sim NAME::`).

mod accounts;
mod macvlan;
mod shared;
mod spaces;
mod trees;
mod vrf;
