package trace

// capture2004 is one of the ten captures of the Blue Game of 2004 with the figures that its report publishes.
type capture2004 struct {
	Name string // run and side: a at the rendezvous and relay ashore, b at the ship's peer behind Iridium
	Figures
}

// Captures2004 are tables 5.1 to 5.7 of the report (R. Haakseth, Evaluating the Performance of JXTA over SATCOM,
// FFI/RAPPORT-2004/02843; published 1). The sum of 3a is 27 less than its parts, as printed.
var Captures2004 = []capture2004{
	{"1a", Figures{
		Connections: 39, TotalS: 1327, ConnMinS: 16.1254, ConnMaxS: 1307.915, ConnAvgS: 142.5863,
		ConnMinPkts: 14, ConnMaxPkts: 499, Packets: 1852, ConnAvgPkts: 50.611,
		SetupMinS: 1.342882, SetupMaxS: 7.006446, SetupAvgS: 2.22017717,
		DataPackets: 828, DataBytes: 771332, TCPBytes: 59650, TotalBytes: 830982, Retransmissions: 19,
	}},
	{"1b", Figures{
		Connections: 38, TotalS: 1296, ConnMinS: 16.22497, ConnMaxS: 1294.069, ConnAvgS: 414.4338,
		ConnMinPkts: 14, ConnMaxPkts: 481, Packets: 1818, ConnAvgPkts: 49.667,
		SetupMinS: 1.357029, SetupMaxS: 23.990461, SetupAvgS: 2.87650086,
		DataPackets: 819, DataBytes: 756563, TCPBytes: 55786, TotalBytes: 812349, Retransmissions: 70,
	}},
	{"2a", Figures{
		Connections: 30, TotalS: 1542, ConnMinS: 15.771, ConnMaxS: 1542.339, ConnAvgS: 245.6274,
		ConnMinPkts: 14, ConnMaxPkts: 557, Packets: 1942, ConnAvgPkts: 70.926,
		SetupMinS: 1.353075, SetupMaxS: 9.917902, SetupAvgS: 2.46921104,
		DataPackets: 948, DataBytes: 875804, TCPBytes: 57878, TotalBytes: 933682, Retransmissions: 32,
	}},
	{"2b", Figures{
		Connections: 30, TotalS: 1392, ConnMinS: 8.288434, ConnMaxS: 1392.069, ConnAvgS: 221.1563,
		ConnMinPkts: 10, ConnMaxPkts: 543, Packets: 1917, ConnAvgPkts: 68.889,
		SetupMinS: 1.376974, SetupMaxS: 15.771176, SetupAvgS: 2.80779226,
		DataPackets: 934, DataBytes: 871977, TCPBytes: 54846, TotalBytes: 926823, Retransmissions: 116,
	}},
	{"3a", Figures{
		Connections: 29, TotalS: 1237, ConnMinS: 16.07701, ConnMaxS: 1225.596, ConnAvgS: 224.4842,
		ConnMinPkts: 15, ConnMaxPkts: 441, Packets: 1768, ConnAvgPkts: 67.875,
		SetupMinS: 1.343053, SetupMaxS: 7.882393, SetupAvgS: 3.06026756,
		DataPackets: 828, DataBytes: 744841, TCPBytes: 55184, TotalBytes: 799998, Retransmissions: 25,
	}},
	{"3b", Figures{
		Connections: 31, TotalS: 1206, ConnMinS: 7.949124, ConnMaxS: 1186.201, ConnAvgS: 220.7359,
		ConnMinPkts: 10, ConnMaxPkts: 437, Packets: 1790, ConnAvgPkts: 66.833,
		SetupMinS: 1.381193, SetupMaxS: 14.939467, SetupAvgS: 3.53609324,
		DataPackets: 848, DataBytes: 764163, TCPBytes: 53016, TotalBytes: 817179, Retransmissions: 133,
	}},
	{"4a", Figures{
		Connections: 32, TotalS: 1593, ConnMinS: 15.70479, ConnMaxS: 1321.687, ConnAvgS: 228.0356,
		ConnMinPkts: 16, ConnMaxPkts: 518, Packets: 2043, ConnAvgPkts: 74.0,
		SetupMinS: 1.278901, SetupMaxS: 12.269773, SetupAvgS: 3.44818907,
		DataPackets: 952, DataBytes: 856136, TCPBytes: 63750, TotalBytes: 919886, Retransmissions: 28,
	}},
	{"4b", Figures{
		Connections: 32, TotalS: 1591, ConnMinS: 15.57118, ConnMaxS: 1356.239, ConnAvgS: 230.8046,
		ConnMinPkts: 16, ConnMaxPkts: 527, Packets: 2109, ConnAvgPkts: 74.592,
		SetupMinS: 1.264307, SetupMaxS: 14.887015, SetupAvgS: 3.76880622,
		DataPackets: 993, DataBytes: 891738, TCPBytes: 62416, TotalBytes: 954154, Retransmissions: 110,
	}},
	{"5a", Figures{
		Connections: 32, TotalS: 1828, ConnMinS: 16.26939, ConnMaxS: 1797.353, ConnAvgS: 226.4415,
		ConnMinPkts: 12, ConnMaxPkts: 649, Packets: 2115, ConnAvgPkts: 70.0,
		SetupMinS: 1.294982, SetupMaxS: 7.927234, SetupAvgS: 2.6615265,
		DataPackets: 1003, DataBytes: 942538, TCPBytes: 64416, TotalBytes: 1006954, Retransmissions: 19,
	}},
	{"5b", Figures{
		Connections: 32, TotalS: 1827, ConnMinS: 16.31448, ConnMaxS: 1799.284, ConnAvgS: 227.0264,
		ConnMinPkts: 12, ConnMaxPkts: 618, Packets: 2132, ConnAvgPkts: 69.833,
		SetupMinS: 1.356076, SetupMaxS: 5.613569, SetupAvgS: 2.78123873,
		DataPackets: 1016, DataBytes: 963385, TCPBytes: 61900, TotalBytes: 1025285, Retransmissions: 72,
	}},
}

// discovery2004 is the times at which the peers of a run first saw a service, s from the run's beginning: table 5.8.
type discovery2004 struct {
	MPA, Bergen float64
}

// Discoveries2004 and PipeSetups2004 (table 5.9, s) are of runs 1 to 5; Payloads2004 is table 5.10, octets at the ship's peer.
var (
	Discoveries2004 = []discovery2004{{323, 379}, {95, 432}, {108, 465}, {402, 644}, {226, 381}}
	PipeSetups2004  = []float64{127, 445, 567, 327, 239}
	Payloads2004    = []ApplicationBytes{
		{In: 41134, Out: 37714, Total: 78848, Of: 756563},
		{In: 45059, Out: 41514, Total: 86573, Of: 871977},
		{In: 28019, Out: 30856, Total: 58875, Of: 764163},
		{In: 35167, Out: 39655, Total: 74822, Of: 891738},
		{In: 56547, Out: 62472, Total: 119019, Of: 963385},
	}
)
