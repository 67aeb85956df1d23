//! The tests of a machine in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-host NAME::`).

mod actions;
mod advertised;
mod commands;
mod golden;
mod lifetimes;
mod nexthops;
mod nonsense;
mod objects;
mod pppoe;
mod radvd;
mod rules;
mod set_timeouts;
mod sets;
mod shown;
mod small;
mod stack;
mod wireguard;
