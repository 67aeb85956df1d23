"""python3 dumbbell.py FLOWS MBIT QUEUE SECONDS with ns-3's bindings: greedy connections from a over l and r to b. Prints packet-hops,
and the CPU that the simulation took without the start of the bindings, which compile themselves."""
import sys
import time

from ns import ns

flows, mbit, queue, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpNewReno"))
ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(1448))
for side in ("Snd", "Rcv"):
    ns.Config.SetDefault(f"ns3::TcpSocket::{side}BufSize", ns.UintegerValue(16_000_000))
nodes = ns.NodeContainer()
nodes.Create(4)
ns.InternetStackHelper().Install(nodes)


def link(i, j, rate, delay):
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    helper.SetChannelAttribute("Delay", ns.StringValue(delay))
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue("1p" if i == 1 else "100000p"))
    pair = ns.NodeContainer()
    pair.Add(nodes.Get(i))
    pair.Add(nodes.Get(j))
    return helper.Install(pair)


devices = [link(0, 1, "10Gbps", "0.1ms"), link(1, 2, f"{mbit}Mbps", "10ms"), link(2, 3, "10Gbps", "0.1ms")]
control = ns.TrafficControlHelper()
limit = f"{2 * mbit}p"
if queue == "fq_codel":
    control.SetRootQueueDisc("ns3::FqCoDelQueueDisc")
elif queue == "RED":
    control.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", ns.StringValue(limit), "MinTh", ns.DoubleValue(mbit / 2),
                             "MaxTh", ns.DoubleValue(mbit * 1.5), "LinkBandwidth", ns.StringValue(f"{mbit}Mbps"))
else:
    control.SetRootQueueDisc("ns3::PfifoFastQueueDisc", "MaxSize", ns.StringValue(limit))
control.Install(devices[1].Get(0))
address = ns.Ipv4AddressHelper()
for i, pair in enumerate(devices):
    address.SetBase(ns.Ipv4Address(f"10.0.{i}.0"), ns.Ipv4Mask("255.255.255.0"))
    last = address.Assign(pair)
ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
apps = []
for i in range(flows):
    port = 5000 + i
    sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo())
    apps.append(sink.Install(nodes.Get(3)))
    source = ns.BulkSendHelper("ns3::TcpSocketFactory", ns.InetSocketAddress(last.GetAddress(1), port).ConvertTo())
    apps.append(source.Install(nodes.Get(0)))
    apps[-1].Start(ns.Seconds(0.001 * i))
ns.Simulator.Stop(ns.Seconds(seconds))
start = time.process_time()
ns.Simulator.Run()
cpu = time.process_time() - start
sunk = sum(apps[2 * i].Get(0).GetObject[ns.PacketSink]().GetTotalRx() for i in range(flows))
# Three hops a segment, and an acknowledgement over three hops for every second one.
print("hops", int(sunk / 1448 * 4.5))
print("cpu", cpu)
