//! What a packet is to the one that its socket sent.

/// What a packet is to the one that was sent: that one itself, a fragment of it, a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Role(pub(crate) u8);

impl Role {
    const FRAGMENT: u8 = 1;
    const COPY: u8 = 2;
    const MOVED: u8 = 4;
    const ORPHAN: u8 = 8;
    const UNSHARED: u8 = 16;

    /// A fragment, or the datagram that fragments have become again.
    #[inline]
    pub const fn is_fragment(self) -> bool {
        self.0 & Role::FRAGMENT != 0
    }
    /// A copy of a packet that goes its own way: mirred's, or one more of a frame to all stations of a segment.
    #[inline]
    pub const fn is_copy(self) -> bool {
        self.0 & Role::COPY != 0
    }
    /// What is left where mirred has sent the packet elsewhere: the packet itself goes on there.
    #[inline]
    pub const fn has_moved(self) -> bool {
        self.0 & Role::MOVED != 0
    }
    /// The socket's memory is free of it already (`skb_orphan_partial`), or never held it: a qdisc's copy.
    #[inline]
    pub const fn is_orphan(self) -> bool {
        self.0 & Role::ORPHAN != 0
    }
    /// From now on an orphan. Whether it was none.
    pub fn set_orphan(&mut self) -> bool {
        let was = self.is_orphan();
        self.0 |= Role::ORPHAN;
        !was
    }
    /// Its bytes are its own, and it belongs to no socket any more: it has been changed where it waited (`skb_unshare`).
    #[inline]
    pub const fn is_unshared(self) -> bool {
        self.0 & Role::UNSHARED != 0
    }
    /// From now on such a one.
    pub fn set_unshared(&mut self) {
        self.0 |= Role::UNSHARED | Role::ORPHAN;
    }
    /// From now on a fragment.
    pub fn set_fragment(&mut self) {
        self.0 |= Role::FRAGMENT;
    }
    /// From now on a copy, or none any more.
    pub fn set_copy(&mut self, copy: bool) {
        self.0 = self.0 & !Role::COPY | if copy { Role::COPY } else { 0 };
    }
    /// The packet goes on elsewhere.
    pub fn set_moved(&mut self) {
        self.0 |= Role::MOVED;
    }
}
