package compact_test

import (
	"fmt"

	"aldis/internal/link/compact"
)

// Two ends of a lane whose messages are opened in order: the sender adds a message when it gets its number, the receiver
// when it opens it, and records what Add wants recorded with it.
func ExampleHistory() {
	var sender, receiver compact.Coder
	out, in := compact.History{Complete: true}, compact.History{}
	for i, text := range []string{
		"TRK;A-7;seq=1;lat=68.12345;lon=15.54321;qual=7\n",
		"TRK;A-7;seq=2;lat=68.12391;lon=15.54390;qual=3\n",
		"TRK;A-7;seq=3;lat=68.12437;lon=15.54462;qual=5\n",
		"TRK;A-7;seq=3;lat=68.12437;lon=15.54462;qual=5\n",
	} {
		number := uint64(i + 1)
		coded, codec := sender.AppendAfter(nil, []byte(text), &out, number)
		out.Add(number, []byte(text))

		back, err := receiver.ExpandAfter(codec, coded, &in, number, 1<<20)
		in.Add(number, back)
		fmt.Println(len(text), codec, len(coded) < 16, string(back) == text, err)
	}
	// Output:
	// 47 modelled false true <nil>
	// 47 learned true true <nil>
	// 47 learned true true <nil>
	// 47 repeated true true <nil>
}
