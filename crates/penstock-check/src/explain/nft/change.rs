//! What statements of nft change.

use penstock_lang::nft::{Expr, Op};
use std::net::IpAddr;

/// What a statement changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::explain) enum Change {
    /// The packet's mark.
    Mark(Bits),
    /// The connection's mark.
    Conn(Bits),
    /// The ToS, or IPv6's traffic class: the bits that are set, and their values.
    Tos {
        /// Whether it is IPv6's.
        six: bool,
        /// Bits.
        mask: u8,
        /// Values.
        value: u8,
    },
    /// The priority.
    Priority(u32),
    /// The source becomes this; `None`: the address of the device it leaves by, which nobody says.
    Source(Option<IpAddr>),
    /// Something that is not followed, which is said.
    Lost,
}

/// A mark's new value: `mark & of_mark ^ connmark & of_conn ^ xor`, no bit of which comes from both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::explain) struct Bits {
    /// Bits taken from the packet's mark.
    pub of_mark: u32,
    /// Bits taken from the connection's.
    pub of_conn: u32,
    /// Bits that are turned.
    pub xor: u32,
}

/// What a statement changes; `Some(None)`: nothing that matters here. `None`: it cannot be told.
pub(super) fn changed(left: &Expr, right: &Expr) -> Option<Option<Change>> {
    let number = |most: u128| super::keys::number(right).filter(|n| *n <= most);
    Some(Some(match left {
        Expr::Meta("mark") => Change::Mark(marked(right)?),
        Expr::Ct("mark", None) => Change::Conn(marked(right)?),
        Expr::Meta("priority") => Change::Priority(number(u32::MAX.into())? as u32),
        Expr::Field(header @ ("ip" | "ip6"), "dscp") => {
            Change::Tos { six: *header == "ip6", mask: 0xfc, value: (number(63)? as u8) << 2 }
        }
        Expr::Field(header @ ("ip" | "ip6"), "ecn") => {
            Change::Tos { six: *header == "ip6", mask: 3, value: number(3)? as u8 }
        }
        Expr::Meta("nftrace" | "pkttype") => return Some(None),
        _ => return None,
    }))
}

/// A mark's new value, bit by bit; `None` where bits move or depend on something else.
fn marked(e: &Expr) -> Option<Bits> {
    if let Some(n) = super::keys::number(e) {
        return Some(Bits { xor: n as u32, ..Bits::default() });
    }
    match e {
        Expr::Meta("mark") => Some(Bits { of_mark: u32::MAX, ..Bits::default() }),
        Expr::Ct("mark", None) => Some(Bits { of_conn: u32::MAX, ..Bits::default() }),
        Expr::Op(op, a, b) => {
            let (a, b) = (marked(a)?, marked(b)?);
            let known = |x: &Bits| x.of_mark | x.of_conn == 0;
            let (value, other) = match (known(&a), known(&b)) {
                (_, true) => (b.xor, a),
                (true, _) => (a.xor, b),
                _ => {
                    // Two halves of a mark.
                    let bits = |x: &Bits| x.of_mark | x.of_conn | x.xor;
                    let apart = bits(&a) & bits(&b) == 0;
                    return (apart && matches!(op, Op::Or | Op::Xor)).then_some(Bits {
                        of_mark: a.of_mark | b.of_mark,
                        of_conn: a.of_conn | b.of_conn,
                        xor: a.xor | b.xor,
                    });
                }
            };
            match op {
                Op::And => Some(Bits {
                    of_mark: other.of_mark & value,
                    of_conn: other.of_conn & value,
                    xor: other.xor & value,
                }),
                Op::Or => Some(Bits {
                    of_mark: other.of_mark & !value,
                    of_conn: other.of_conn & !value,
                    xor: other.xor | value,
                }),
                Op::Xor => Some(Bits { xor: other.xor ^ value, ..other }),
                Op::Left | Op::Right => None,
            }
        }
        _ => None,
    }
}

impl Bits {
    /// The new value, where both marks are known.
    pub fn of(self, mark: u32, conn: u32) -> u32 {
        mark & self.of_mark ^ conn & self.of_conn ^ self.xor
    }
    /// The same of what is known of both: bits and values. `None` where a bit that is not known would be turned.
    pub fn known(self, mark: (u32, u32), conn: (u32, u32)) -> Option<(u32, u32)> {
        let taken = self.of_mark | self.of_conn;
        let known = !taken | self.of_mark & mark.0 | self.of_conn & conn.0;
        (self.xor & !known == 0).then(|| (known, self.of(mark.1, conn.1) & known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_bit_by_bit() {
        let n = |v: u128| Expr::Value(v, penstock_lang::nft::Type::Mark);
        let op = |op, a: Expr, b: Expr| Expr::Op(op, Box::new(a), Box::new(b));
        // meta mark & 0xffff0000 | ct mark & 0xff ^ 0x3
        let high = op(Op::And, Expr::Meta("mark"), n(0xffff_0000));
        let low = op(Op::Xor, op(Op::And, Expr::Ct("mark", None), n(0xff)), n(3));
        let both = marked(&op(Op::Or, high, low)).unwrap();
        assert_eq!(both.of(0x1234_5678, 0xabcd), 0x1234_00ce);
        // Of what is known of both.
        assert_eq!(both.known((u32::MAX, 0x1234_5678), (3, 1)), Some((0xffff_ff03, 0x1234_0002)));
        assert_eq!(both.known((u32::MAX, 0), (0, 0)), None);
        assert_eq!(marked(&op(Op::Left, Expr::Meta("mark"), n(1))), None);
    }
}
