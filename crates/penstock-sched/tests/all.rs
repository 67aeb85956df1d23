//! The tests of queueing disciplines in one program: each file is a module here, and is run alone by its name (`cargo test -p penstock-sched NAME::`).

mod alloc;
mod cbq;
mod classes;
mod clocks;
mod displaced;
mod every_request;
mod family;
mod ns2_red;
mod passing_by;
mod queues;
mod rig;
mod typed;
