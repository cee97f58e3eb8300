package trace

// linkAnalyser reads what gateways say to each other.
type linkAnalyser struct{}

func (a *Analyser) udp(s *segment) { a.other++ }
