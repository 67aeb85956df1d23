# ns dumbbell.tcl FLOWS MBIT QUEUE(DropTail|RED) SECONDS: greedy SACK connections from a over l and r to b. Prints packet-hops.
lassign $argv flows mbit queue seconds
Agent/TCP set packetSize_ 1448
Agent/TCP set window_ 10000
set limit [expr $mbit * 2]
Queue/RED set thresh_ [expr $limit * 0.25]
Queue/RED set maxthresh_ [expr $limit * 0.75]
Queue/RED set queue_in_bytes_ false
Queue/RED set bytes_ false
Queue/RED set mean_pktsize_ 1500
Queue/RED set q_weight_ 0.002
set ns [new Simulator]
foreach n {a l r b} { set $n [$ns node] }
$ns duplex-link $a $l 10000Mb 0.1ms DropTail
$ns duplex-link $r $b 10000Mb 0.1ms DropTail
$ns simplex-link $l $r ${mbit}Mb 10ms $queue
$ns simplex-link $r $l ${mbit}Mb 10ms DropTail
foreach {x y} [list $a $l $l $a $r $b $b $r $r $l] { $ns queue-limit $x $y 100000 }
$ns queue-limit $l $r $limit
for {set i 0} {$i < $flows} {incr i} {
  set t($i) [new Agent/TCP/Sack1]
  set s [new Agent/TCPSink/Sack1/DelAck]
  $ns attach-agent $a $t($i)
  $ns attach-agent $b $s
  $ns connect $t($i) $s
  set f [new Application/FTP]
  $f attach-agent $t($i)
  $ns at [expr 0.001 * $i] "$f start"
}
foreach {name x y} [list al $a $l lr $l $r rb $r $b br $b $r rl $r $l la $l $a] {
  set m($name) [$ns monitor-queue $x $y ""]
}
proc finish {} {
  global m
  set hops 0
  foreach name [array names m] { set hops [expr $hops + [$m($name) set pdepartures_]] }
  puts "hops $hops"
  exit 0
}
$ns at $seconds finish
$ns run
