//! The kernel's functions that programs may call, by their numbers.
//!
//! Follows: linux v6.12 `include/uapi/linux/bpf.h` `___BPF_FUNC_MAPPER`; `net/core/filter.c` `tc_cls_act_func_proto`; `kernel/bpf/helpers.c`
//! `bpf_base_func_proto`.

/// One helper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Helper {
    /// Its number.
    pub id: i32,
    /// Its name, without `bpf_`.
    pub name: &'static str,
    /// How many arguments it takes.
    pub args: u8,
    /// Only programs of a GPL-compatible licence may call it.
    pub gpl: bool,
    /// What a program that calls it is said to have, where it is not simulated.
    pub missing: Option<&'static str>,
}

const fn ours(id: i32, name: &'static str, args: u8) -> Helper {
    Helper { id, name, args, gpl: false, missing: None }
}
const fn gpl(id: i32, name: &'static str, args: u8) -> Helper {
    Helper { id, name, args, gpl: true, missing: None }
}
macro_rules! missing {
    ($id:literal, $name:literal, $args:literal) => {
        Helper {
            id: $id,
            name: $name,
            args: $args,
            gpl: false,
            missing: Some(concat!("bpf with the helper ", $name)),
        }
    };
}

/// Those that programs of the types `sched_cls` and `sched_act` may call, in the order of their numbers.
pub(super) static HELPERS: &[Helper] = &[
    ours(1, "map_lookup_elem", 2),
    ours(2, "map_update_elem", 4),
    ours(3, "map_delete_elem", 2),
    ours(5, "ktime_get_ns", 0),
    gpl(6, "trace_printk", 2),
    ours(7, "get_prandom_u32", 0),
    ours(8, "get_smp_processor_id", 0),
    ours(9, "skb_store_bytes", 5),
    ours(10, "l3_csum_replace", 5),
    ours(11, "l4_csum_replace", 5),
    ours(12, "tail_call", 3),
    ours(13, "clone_redirect", 3),
    missing!(17, "get_cgroup_classid", 1),
    ours(18, "skb_vlan_push", 3),
    ours(19, "skb_vlan_pop", 1),
    missing!(20, "skb_get_tunnel_key", 4),
    missing!(21, "skb_set_tunnel_key", 4),
    ours(23, "redirect", 2),
    ours(24, "get_route_realm", 1),
    gpl(25, "perf_event_output", 5),
    ours(26, "skb_load_bytes", 4),
    ours(28, "csum_diff", 5),
    missing!(29, "skb_get_tunnel_opt", 3),
    missing!(30, "skb_set_tunnel_opt", 3),
    missing!(31, "skb_change_proto", 3),
    ours(32, "skb_change_type", 2),
    missing!(33, "skb_under_cgroup", 3),
    ours(34, "get_hash_recalc", 1),
    missing!(35, "get_current_task", 0),
    missing!(38, "skb_change_tail", 3),
    ours(39, "skb_pull_data", 2),
    ours(40, "csum_update", 2),
    ours(41, "set_hash_invalid", 1),
    ours(42, "get_numa_node_id", 0),
    missing!(43, "skb_change_head", 3),
    missing!(46, "get_socket_cookie", 1),
    missing!(47, "get_socket_uid", 1),
    ours(48, "set_hash", 2),
    missing!(50, "skb_adjust_room", 4),
    missing!(66, "skb_get_xfrm_state", 5),
    ours(68, "skb_load_bytes_relative", 5),
    missing!(69, "fib_lookup", 4),
    missing!(79, "skb_cgroup_id", 1),
    missing!(83, "skb_ancestor_cgroup_id", 2),
    missing!(84, "sk_lookup_tcp", 5),
    missing!(85, "sk_lookup_udp", 5),
    missing!(86, "sk_release", 1),
    missing!(87, "map_push_elem", 3),
    missing!(88, "map_pop_elem", 2),
    missing!(89, "map_peek_elem", 2),
    ours(93, "spin_lock", 1),
    ours(94, "spin_unlock", 1),
    missing!(95, "sk_fullsock", 1),
    missing!(96, "tcp_sock", 1),
    ours(97, "skb_ecn_set_ce", 1),
    missing!(98, "get_listener_sock", 1),
    missing!(99, "skc_lookup_tcp", 5),
    missing!(100, "tcp_check_syncookie", 5),
    missing!(105, "strtol", 4),
    missing!(106, "strtoul", 4),
    missing!(107, "sk_storage_get", 4),
    missing!(108, "sk_storage_delete", 2),
    missing!(110, "tcp_gen_syncookie", 5),
    missing!(112, "probe_read_user", 3),
    missing!(113, "probe_read_kernel", 3),
    missing!(114, "probe_read_user_str", 3),
    missing!(115, "probe_read_kernel_str", 3),
    ours(118, "jiffies64", 0),
    missing!(124, "sk_assign", 3),
    ours(125, "ktime_get_boot_ns", 0),
    missing!(130, "ringbuf_output", 4),
    missing!(131, "ringbuf_reserve", 3),
    missing!(132, "ringbuf_submit", 2),
    missing!(133, "ringbuf_discard", 2),
    missing!(134, "ringbuf_query", 2),
    missing!(135, "csum_level", 2),
    missing!(136, "skc_to_tcp6_sock", 1),
    missing!(137, "skc_to_tcp_sock", 1),
    missing!(138, "skc_to_tcp_timewait_sock", 1),
    missing!(139, "skc_to_tcp_request_sock", 1),
    missing!(140, "skc_to_udp6_sock", 1),
    missing!(152, "redirect_neigh", 4),
    missing!(153, "per_cpu_ptr", 2),
    missing!(154, "this_cpu_ptr", 1),
    missing!(155, "redirect_peer", 2),
    ours(160, "ktime_get_coarse_ns", 0),
    missing!(163, "check_mtu", 5),
    missing!(164, "for_each_map_elem", 4),
    missing!(165, "snprintf", 5),
    missing!(169, "timer_init", 3),
    missing!(170, "timer_set_callback", 2),
    missing!(171, "timer_start", 3),
    missing!(172, "timer_cancel", 1),
    missing!(177, "trace_vprintk", 4),
    missing!(178, "skc_to_unix_sock", 1),
    missing!(181, "loop", 4),
    missing!(182, "strncmp", 3),
    ours(192, "skb_set_tstamp", 3),
    missing!(194, "kptr_xchg", 2),
    missing!(195, "map_lookup_percpu_elem", 3),
    missing!(196, "skc_to_mptcp_sock", 1),
    missing!(197, "dynptr_from_mem", 4),
    missing!(201, "dynptr_read", 5),
    missing!(202, "dynptr_write", 5),
    missing!(203, "dynptr_data", 3),
    missing!(204, "tcp_raw_gen_syncookie_ipv4", 3),
    missing!(205, "tcp_raw_gen_syncookie_ipv6", 3),
    missing!(206, "tcp_raw_check_syncookie_ipv4", 2),
    missing!(207, "tcp_raw_check_syncookie_ipv6", 2),
    missing!(208, "ktime_get_tai_ns", 0),
];

/// The highest number of a helper that the kernel has at all (`__BPF_FUNC_MAX_ID` less one).
pub(super) const LAST: i32 = 211;

/// The helper of this number, where such programs may call it.
pub(super) fn find(id: i32) -> Option<&'static Helper> {
    HELPERS.binary_search_by_key(&id, |h| h.id).ok().map(|at| &HELPERS[at])
}

/// The licences that count as GPL (`license_is_gpl_compatible`).
pub(super) fn is_gpl(license: &str) -> bool {
    matches!(
        license,
        "GPL" | "GPL v2" | "GPL and additional rights" | "Dual BSD/GPL" | "Dual MIT/GPL" | "Dual MPL/GPL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_found_by_their_numbers() {
        assert!(HELPERS.windows(2).all(|w| w[0].id < w[1].id));
        assert_eq!(find(97).map(|h| (h.name, h.missing)), Some(("skb_ecn_set_ce", None)));
        assert_eq!(find(69).and_then(|h| h.missing), Some("bpf with the helper fib_lookup"));
        assert_eq!(find(44), None, "xdp_adjust_head is none of theirs");
    }
}
