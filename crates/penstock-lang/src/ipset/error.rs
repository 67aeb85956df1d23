//! What the kernel answers, and ipset's words for it.
//!
//! Follows: ipset 7.17 `lib/errcode.c`; linux v6.12 `include/uapi/linux/netfilter/ipset/ip_set.h` `enum ipset_errno`.

use super::Verb;

/// A refusal of the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// ENOENT.
    NoSet,
    /// EEXIST of `create`.
    SetExists,
    /// `IPSET_ERR_BUSY`.
    Busy,
    /// `IPSET_ERR_EXIST_SETNAME2`.
    Name2,
    /// `IPSET_ERR_REFERENCED`.
    Referenced,
    /// `IPSET_ERR_TYPE_MISMATCH`.
    TypeMismatch,
    /// `IPSET_ERR_INVALID_NETMASK`.
    Netmask,
    /// `IPSET_ERR_INVALID_MARKMASK`.
    Markmask,
    /// `IPSET_ERR_INVALID_FAMILY`.
    Family,
    /// `IPSET_ERR_INVALID_CIDR`.
    Cidr,
    /// `IPSET_ERR_TIMEOUT`.
    Timeout,
    /// `IPSET_ERR_COUNTER`.
    Counter,
    /// `IPSET_ERR_COMMENT`.
    Comment,
    /// `IPSET_ERR_SKBINFO`.
    Skbinfo,
    /// `IPSET_ERR_EXIST`: it is there already, or not there.
    Exist,
    /// `IPSET_ERR_HASH_FULL`.
    HashFull,
    /// `IPSET_ERR_HASH_ELEM`.
    HashElem,
    /// `IPSET_ERR_INVALID_PROTO`.
    Proto,
    /// `IPSET_ERR_HASH_RANGE_UNSUPPORTED`.
    RangeUnsupported,
    /// `IPSET_ERR_HASH_RANGE`.
    HashRange,
    /// `IPSET_ERR_BITMAP_RANGE`.
    BitmapRange,
    /// `IPSET_ERR_BITMAP_RANGE_SIZE`.
    BitmapSize,
    /// `IPSET_ERR_NAME`.
    Name,
    /// `IPSET_ERR_LOOP`.
    Loop,
    /// `IPSET_ERR_BEFORE`.
    Before,
    /// `IPSET_ERR_NAMEREF`.
    Nameref,
    /// `IPSET_ERR_REF_EXIST`.
    RefExist,
    /// EINVAL.
    Invalid,
    /// ENOMEM.
    NoMemory,
}

impl Error {
    /// What ipset says of it.
    pub const fn words(self, verb: Verb) -> &'static str {
        match self {
            Error::NoSet => "The set with the given name does not exist",
            Error::SetExists => "Set cannot be created: set with the same name already exists",
            Error::Busy => "Set cannot be destroyed: it is in use by a kernel component",
            Error::Name2 => match verb {
                Verb::Swap => "Sets cannot be swapped: the second set does not exist",
                _ => "Set cannot be renamed: a set with the new name already exists",
            },
            Error::Referenced => "Set cannot be renamed: it is in use by another system",
            Error::TypeMismatch => "The sets cannot be swapped: their type does not match",
            Error::Netmask => "The value of the netmask parameter is invalid",
            Error::Markmask => "The value of the markmask parameter is invalid",
            Error::Family => "Protocol family not supported by the set type",
            Error::Cidr => "The value of the CIDR parameter of the IP address is invalid",
            Error::Timeout => "Timeout cannot be used: set was created without timeout support",
            Error::Counter => "Packet/byte counters cannot be used: set was created without counter support",
            Error::Comment => "Comment cannot be used: set was created without comment support",
            Error::Skbinfo => "Skbinfo mapping cannot be used: set was created without skbinfo support",
            Error::Exist => match verb {
                Verb::Del => "Element cannot be deleted from the set: it's not added",
                _ => "Element cannot be added to the set: it's already added",
            },
            Error::HashFull => "Hash is full, cannot add more elements",
            Error::HashElem => "Null-valued element, cannot be stored in a hash type of set",
            Error::Proto => "Invalid protocol specified",
            Error::RangeUnsupported => "Range is not supported in the \"net\" component of the element",
            Error::HashRange => "Invalid range, covers the whole address space",
            Error::BitmapRange => "Element is out of the range of the set",
            Error::BitmapSize => "The range you specified exceeds the size limit of the set type",
            Error::Name => "Set to be added/deleted/tested as element does not exist.",
            Error::Loop => "Sets with list:set type cannot be added to the set.",
            Error::Before => "No reference set specified.",
            Error::Nameref => "The set to which you referred with 'before' or 'after' does not exist.",
            Error::RefExist => {
                "The set to which you referred with 'before' or 'after' is not added to the set."
            }
            Error::Invalid => "Kernel error received: Invalid argument",
            Error::NoMemory => "Kernel error received: Cannot allocate memory",
        }
    }
    /// Our advice.
    pub const fn advice(self) -> &'static str {
        match self {
            Error::NoSet => "ipset create makes a set, ipset list -n names those there are",
            Error::SetExists | Error::Exist => "-exist passes over what is there already",
            Error::Busy | Error::Referenced => "delete the rules and lists that name the set first",
            Error::Cidr => {
                "the length of a prefix is 1 to 32, of IPv6 1 to 128; write /0 as two halves: 0.0.0.0/1 and 128.0.0.0/1"
            }
            Error::Timeout => "ipset create … timeout SECONDS",
            Error::Counter => "ipset create … counters",
            Error::Comment => "ipset create … comment",
            Error::Skbinfo => "ipset create … skbinfo",
            Error::HashFull => "ipset create … maxelem N; 65536 where none is given",
            Error::TypeMismatch => "swap takes two sets of the same type and family",
            _ => "",
        }
    }
}
