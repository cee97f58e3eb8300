package site

import (
	"maps"
	"slices"
)

// Metric is one number of an adapter, for the operator's graphs.
type Metric struct {
	Name, Help string
	Gauge      bool // it may fall; otherwise it counts since the start of the process
	Labels     []Label
	Value      float64
}

// Label tells metrics of one name apart.
type Label struct{ Name, Value string }

// Gauge is the metric of how much there is of something now.
func Gauge(name, help string, v int) Metric {
	return Metric{Name: name, Help: help, Gauge: true, Value: float64(v)}
}

// Counters are the metrics of what has happened since the start of the process, one for each value of a label, in the order of the values.
func Counters(name, help, label string, counts map[string]int) (list []Metric) {
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, Metric{Name: name, Help: help, Labels: []Label{{Name: label, Value: value}}, Value: float64(counts[value])})
	}
	return list
}
