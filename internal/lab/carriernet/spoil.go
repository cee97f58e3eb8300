package carriernet

import (
	"slices"

	"aldis/internal/gateway/api"
)

// Spoilt returns the forms in which a record may come back from a bad disk. In a value of 80 octets or more the first head octets are
// changed, one at a time; in a shorter one every fourth octet too.
func Spoilt(r api.Record, head int) (list []api.Record) {
	add := func(key, value []byte) { list = append(list, api.Record{Bucket: r.Bucket, Key: key, Value: value}) }
	for _, n := range []int{0, 1, len(r.Value) / 2, len(r.Value) - 1} {
		add(r.Key, r.Value[:max(0, min(n, len(r.Value)))])
	}
	add(r.Key, append(slices.Clone(r.Value), 0xff, 0, 7))
	for at := range r.Value {
		if at < head || len(r.Value) < 80 && at%4 == 0 {
			value := slices.Clone(r.Value)
			value[at] ^= 0x81
			add(r.Key, value)
		}
	}
	for at := range r.Key {
		key := slices.Clone(r.Key)
		key[at] ^= 0x80
		add(key, r.Value)
	}
	for _, n := range []int{0, 1, len(r.Key) / 2, len(r.Key) - 1} {
		add(r.Key[:max(0, min(n, len(r.Key)))], r.Value)
	}
	return list
}
