//! What a connection adds to its machine's counters, those of `nstat`, `/proc/net/snmp` and `/proc/net/netstat`.
//!
//! Follows: linux v6.12 include/uapi/linux/snmp.h, net/ipv4/proc.c `snmp4_net_list`; each counter is raised where the kernel's function raises it.
//! Differs: what the receive queue's collapsing, joined SACKs (`TCPSackShifted`, `TCPSackMerged`, `TCPSackShiftFallback`), a socket's backlog and cookies
//! count is not there, as these are not simulated.

/// An enumeration of counters, each with its name as `nstat` prints it.
macro_rules! counters {
    ($(#[$about:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum $kind {
            $($(#[$doc])* $variant,)*
        }
        impl $kind {
            /// How many there are.
            pub const ALL: usize = [$($kind::$variant),*].len();
            /// Their names.
            pub const NAMES: [&str; $kind::ALL] = [$($name),*];
        }
        impl Counts<{ $kind::ALL }> {
            /// One more.
            #[inline]
            pub fn one(&mut self, of: $kind) {
                self.add(of, 1);
            }
            /// So many more.
            #[inline]
            pub fn add(&mut self, of: $kind, n: u32) {
                let counter = &mut self.0[of as usize];
                *counter = counter.wrapping_add(n);
            }
            /// Tells those that are not 0.
            pub fn tell(&self, tell: &mut dyn FnMut(&'static str, u64)) {
                for (name, &n) in $kind::NAMES.iter().zip(&self.0).filter(|(_, n)| **n > 0) {
                    tell(name, n.into());
                }
            }
        }
    };
}

/// So many counters, of one connection.
#[derive(Debug)]
pub(crate) struct Counts<const N: usize>([u32; N]);

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        Counts([0; N])
    }
}

counters! {
    /// What the receiving half counts.
    Rx {
        HpHits = "TcpExtTCPHPHits",
        RcvCoalesce = "TcpExtTCPRcvCoalesce",
        DelayedAcks = "TcpExtDelayedACKs",
        DelayedAckLost = "TcpExtDelayedACKLost",
        DsackOldSent = "TcpExtTCPDSACKOldSent",
        DsackOfoSent = "TcpExtTCPDSACKOfoSent",
        OfoQueue = "TcpExtTCPOFOQueue",
        OfoDrop = "TcpExtTCPOFODrop",
        OfoMerge = "TcpExtTCPOFOMerge",
        AckCompressed = "TcpExtTCPAckCompressed",
        PruneCalled = "TcpExtPruneCalled",
        RcvPruned = "TcpExtRcvPruned",
        OfoPruned = "TcpExtOfoPruned",
        RcvQDrop = "TcpExtTCPRcvQDrop",
        ZeroWindowDrop = "TcpExtTCPZeroWindowDrop",
        FromZeroWindowAdv = "TcpExtTCPFromZeroWindowAdv",
        ToZeroWindowAdv = "TcpExtTCPToZeroWindowAdv",
        WantZeroWindowAdv = "TcpExtTCPWantZeroWindowAdv",
    }
}

counters! {
    /// What the sending half, recovery and the connection's states count.
    Tx {
        PureAcks = "TcpExtTCPPureAcks",
        HpAcks = "TcpExtTCPHPAcks",
        OrigDataSent = "TcpExtTCPOrigDataSent",
        ActiveOpens = "TcpActiveOpens",
        PassiveOpens = "TcpPassiveOpens",
        AttemptFails = "TcpAttemptFails",
        EstabResets = "TcpEstabResets",
        OutRsts = "TcpOutRsts",
        InErrs = "TcpInErrs",
        EmbryonicRsts = "TcpExtEmbryonicRsts",
        TimeWait = "TcpExtTW",
        PawsEstab = "TcpExtPAWSEstab",
        RenoRecovery = "TcpExtTCPRenoRecovery",
        SackRecovery = "TcpExtTCPSackRecovery",
        SackReneging = "TcpExtTCPSACKReneging",
        SackReorder = "TcpExtTCPSACKReorder",
        RenoReorder = "TcpExtTCPRenoReorder",
        TsReorder = "TcpExtTCPTSReorder",
        FullUndo = "TcpExtTCPFullUndo",
        PartialUndo = "TcpExtTCPPartialUndo",
        DsackUndo = "TcpExtTCPDSACKUndo",
        LossUndo = "TcpExtTCPLossUndo",
        RenoFailures = "TcpExtTCPRenoFailures",
        SackFailures = "TcpExtTCPSackFailures",
        LossFailures = "TcpExtTCPLossFailures",
        FastRetrans = "TcpExtTCPFastRetrans",
        SlowStartRetrans = "TcpExtTCPSlowStartRetrans",
        Timeouts = "TcpExtTCPTimeouts",
        LossProbes = "TcpExtTCPLossProbes",
        LossProbeRecovery = "TcpExtTCPLossProbeRecovery",
        RenoRecoveryFail = "TcpExtTCPRenoRecoveryFail",
        SackRecoveryFail = "TcpExtTCPSackRecoveryFail",
        DsackRecv = "TcpExtTCPDSACKRecv",
        DsackOfoRecv = "TcpExtTCPDSACKOfoRecv",
        AbortOnTimeout = "TcpExtTCPAbortOnTimeout",
        SackDiscard = "TcpExtTCPSACKDiscard",
        DsackIgnoredOld = "TcpExtTCPDSACKIgnoredOld",
        DsackIgnoredNoUndo = "TcpExtTCPDSACKIgnoredNoUndo",
        SpuriousRtos = "TcpExtTCPSpuriousRTOs",
        RetransFail = "TcpExtTCPRetransFail",
        ChallengeAck = "TcpExtTCPChallengeACK",
        SynChallenge = "TcpExtTCPSYNChallenge",
        SpuriousRtxHostQueues = "TcpExtTCPSpuriousRtxHostQueues",
        AutoCorking = "TcpExtTCPAutoCorking",
        SynRetrans = "TcpExtTCPSynRetrans",
        SkippedPaws = "TcpExtTCPACKSkippedPAWS",
        SkippedSeq = "TcpExtTCPACKSkippedSeq",
        SkippedChallenge = "TcpExtTCPACKSkippedChallenge",
        WinProbe = "TcpExtTCPWinProbe",
        MtupFail = "TcpExtTCPMTUPFail",
        MtupSuccess = "TcpExtTCPMTUPSuccess",
        TimeoutRehash = "TcpExtTcpTimeoutRehash",
        FastOpenActive = "TcpExtTCPFastOpenActive",
        FastOpenActiveFail = "TcpExtTCPFastOpenActiveFail",
        DsackRecvSegs = "TcpExtTCPDSACKRecvSegs",
        DsackIgnoredDubious = "TcpExtTCPDSACKIgnoredDubious",
    }
}
