//! `atm`: the qdisc and its classes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_atm.c`.
//! Differs: `pvc`, `svc`, `qos` and `sap` take any word, for what they name is read by a library for ATM; a class always
//! fails where tc opens its socket, as it does on a machine without ATM.

use super::{Kind, OptionWord, Side, helped, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::{Failure, num};
use penstock_model::{Handle, Options};

const USAGE: &str = "Usage: atm\n";
const CLASS_USAGE: &str = "\
Usage: ... atm ( pvc ADDR | svc ADDR [ sap SAP ] ) [ qos QOS ] [ sndbuf BYTES ]
          [ hdr HEX ] [ excess CLASSID|clp ] [ clip ]
";

const CLASS_WORDS: &[OptionWord] = &[
    word("pvc", "ADDRESS", "a permanent connection: [ITF.]VPI.VCI"),
    word("svc", "ADDRESS", "a switched connection"),
    word("sap", "SAP", "with svc: the access point"),
    word("qos", "QOS", "what the connection asks for; default aal5,ubr:sdu=9180,rx:none"),
    word("sndbuf", "BYTES", "the socket's send buffer"),
    word("hdr", "HEX", "what is put before each packet; default the LLC/SNAP header of IP"),
    word("excess", "CLASSID|clp", "where excess traffic goes; default clp: it is marked as loss-tolerant"),
    word("clip", "", "classical IP over ATM on this connection"),
];

/// `MAX_HDR_LEN`.
const HDR_MAX: usize = 64;

pub static KIND: Kind = Kind {
    id: "atm",
    in_7_2: false,
    qdisc: Some(Side { parse, say: |_| (), words: &[] }),
    class: Some(Side { parse: parse_class, say: |_| (), words: CLASS_WORDS }),
    print,
    ..Kind::BARE
};

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    match args.next_word() {
        None => Ok(None),
        Some(_) => Err(helped(args, USAGE)),
    }
}

fn parse_class(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "pvc" | "svc" | "qos" | "sap" => {
                args.value()?;
            }
            "sndbuf" => {
                let v = args.value()?;
                if num::strtoul(&v.text, 0).is_none_or(|(_, rest)| !rest.is_empty()) {
                    return Err(helped(args, CLASS_USAGE));
                }
            }
            "hdr" => header(args)?,
            "excess" => {
                let v = args.value()?;
                if v.text != "clp" && num::classid(&v.text, args.kernel()).is_none() {
                    return Err(helped(args, CLASS_USAGE));
                }
            }
            "clip" => {}
            _ => return Err(helped(args, CLASS_USAGE)),
        }
    }
    let line = "socket: Address family not supported by protocol";
    Err(args.fail(line, 1, "no machine here has ATM; an atm qdisc can have no classes"))
}

/// Pairs of hexadecimal digits, with dots between them or not.
fn header(args: &mut Args) -> Result<(), Failure> {
    let v = args.value()?;
    let mut rest = v.text.as_bytes();
    let mut len = 0;
    loop {
        rest = match rest {
            [] => return Ok(()),
            _ if len == HDR_MAX => {
                return Err(args.fail("header is too long", 1, "64 bytes at most"));
            }
            [b'.', rest @ ..] => rest,
            [a, b, rest @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                len += 1;
                rest
            }
            _ => return Err(helped(args, CLASS_USAGE)),
        };
    }
}

fn print(o: &Options, out: &mut Out) {
    if let Some(bytes) = o.bytes("hdr") {
        out.text_only(format_args!("hdr"));
        for (i, byte) in bytes.iter().enumerate() {
            out.text_only(format_args!("{}{byte:02x}", if i == 0 { ' ' } else { '.' }));
        }
        out.text_only(format_args!("{} ", if bytes.is_empty() { " ." } else { "" }));
    }
    match o.u32("excess") {
        None => {}
        Some(0) => out.text_only(format_args!("excess clp ")),
        Some(id) => out.text_only(format_args!("excess {} ", Handle(id))),
    }
}
