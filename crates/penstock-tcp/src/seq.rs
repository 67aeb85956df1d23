//! Sequence numbers that never wrap: 32 bits on the wire, 64 bits inside.

/// Where every stream starts inside, so that numbers shortly before it do not underflow.
const BASE: u64 = 1 << 32;

/// The inside number of an initial sequence number.
pub(crate) const fn first(isn: u32) -> u64 {
    BASE + isn as u64
}

/// The inside number of `wire` that lies nearest to `near`.
#[inline]
pub(crate) const fn unwrap(wire: u32, near: u64) -> u64 {
    near.wrapping_add(wire.wrapping_sub(near as u32) as i32 as i64 as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_unwrap_to_the_nearest() {
        let near = first(0xffff_fff0);
        assert_eq!(unwrap(0x10, near), near + 0x20);
        assert_eq!(unwrap(0xffff_ffe0, near), near - 0x10);
        assert_eq!(unwrap(0xffff_fff0, near), near);
        assert_eq!(unwrap(0xffff_ffff, first(0)), first(0) - 1);
    }
}
