# RED's average after each arrival, from ns-2 itself:  ns red.tcl seed=1 packets=400 KEY=VALUE …
# One link of 1 Mbit/s; packets of 100 to 1500 bytes come at times that no two events share. Prints what was set, then for each
# arrival: time in ns, bytes, queue that it found (bytes or packets), average, probability, max_p, drops so far.
array set P { seed 1 packets 500 load 1.1 limit 30 }
array set Q {}
foreach a $argv {
  set i [string first = $a]; set k [string range $a 0 [expr $i-1]]; set v [string range $a [expr $i+1] end]
  if {[info exists P($k)]} { set P($k) $v } else { set Q($k) $v }
}
foreach k [array names Q] { Queue/RED set ${k}_ $Q($k) }
set ns [new Simulator]
ns-random $P(seed)
set a [$ns node]; set b [$ns node]
$ns simplex-link $a $b 1Mb 5ms RED
$ns simplex-link $b $a 1Mb 5ms DropTail
$ns queue-limit $a $b $P(limit)
set q [[$ns link $a $b] queue]
set fm [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $a $b] $fm
set nul [new Agent/Null]; $ns attach-agent $b $nul
set u [new Agent/UDP]; $u set packetSize_ 3000; $ns attach-agent $a $u; $ns connect $u $nul
set x $P(seed)
proc rnd {n} { global x; set x [expr ($x * 1103515245 + 12345) % 2147483648]; return [expr ($x / 65536) % $n] }
proc arrive {t size} {
  global q u fm
  $u send $size
  puts "[expr round($t*1e9)] $size [$q set curq_] [$q set ave_] [$q set prob1_] [$q set cur_max_p_] [$fm set pdrops_]"
}
puts "# ns-2.35, recorded with: $argv"
set t 0.0100001
for {set i 0} {$i < $P(packets)} {incr i} {
  set size [expr 100 + [rnd 1400]]
  $ns at [format %.9f $t] "arrive [format %.9f $t] $size"
  # Bursts, calm, and now and then silence.
  set gap [expr 800*8.0/1e6/$P(load) * [rnd 1000] / 500.0]
  if {[rnd 60] == 0} { set gap [expr $gap + [rnd 900] / 1000.0] }
  set t [expr $t + $gap + 0.000001037]
  set t [expr round($t*1e9)/1e9]
}
$ns at [expr $t + 10] "exit 0"
$ns run
