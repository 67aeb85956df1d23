//! A tc command line to data; and tc's own refusal of another, in its words.

use penstock_lang::tc::{self, Command};
use penstock_lang::token;
use penstock_model::Kernel;

fn main() {
    let read = |line: &str| tc::parse(&token::words(line).expect("no open quote"), Kernel::V6_12);

    let commands =
        read("tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit ceil 10mbit").expect("tc takes it");
    let [Command::Class { req, .. }] = &commands[..] else { panic!("it is one request about a class") };
    println!("{req:?}");

    let failure = read("tc class add dev eth0 parent 1: classid 1:10 htb ceil 10mbit").expect_err("no rate");
    print!("{}", failure.stderr);
    assert_eq!(failure.stderr, "\"rate\" is required.\n");
    assert_eq!(failure.exit, 1);
}
