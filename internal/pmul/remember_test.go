package pmul_test

import (
	"testing"
	"time"

	"aldis/internal/pmul"
)

// keptReceiver is a Receiver, and the journal that it keeps.
type keptReceiver struct {
	*pmul.Receiver
	cfg     pmul.Config
	journal map[string]pmul.Record
}

func newKept(t *testing.T, coding pmul.Coding, change func(*pmul.Config)) *keptReceiver {
	t.Helper()
	k := &keptReceiver{cfg: pmul.ConfigFor(load(t, "hf-2400"), 2, coding, sealOctets, nil), journal: map[string]pmul.Record{}}
	change(&k.cfg)
	k.restart(t)
	return k
}

func (k *keptReceiver) restart(t *testing.T) {
	t.Helper()
	var list []pmul.Record
	for _, r := range k.journal {
		list = append(list, r)
	}
	var err error
	if k.Receiver, err = pmul.NewReceiver(k.cfg, list); err != nil {
		t.Fatal(err)
	}
}

// hear gives the receiver a message of one fragment, and returns how many were delivered.
func (k *keptReceiver) hear(now time.Time, id pmul.MessageID, expiry time.Time) int {
	a, d := address(id, 1, 2), data(id, 1, "x")
	a.Expiry = expiry
	return k.do(now, a) + k.do(now, d)
}

func (k *keptReceiver) do(now time.Time, ev pmul.Event) int {
	out := k.Step(now, ev)
	for _, r := range out.Records {
		if name := r.Bucket + string(r.Key); r.Value == nil {
			delete(k.journal, name)
		} else {
			k.journal[name] = r
		}
	}
	return len(out.Deliver)
}

// TestSendersClock: a gateway accepts messages whatever their sender's clock says; plain ACP 142 does not.
func TestSendersClock(t *testing.T) {
	for _, days := range []int{-400, -2, 2, 400} {
		expiry := epoch.AddDate(0, 0, days)
		if n := newKept(t, pmul.Compact, func(*pmul.Config) {}).hear(epoch, 1, expiry); n != 1 {
			t.Errorf("a message that ends %d days from now is delivered %d times", days, n)
		}
		want := 0
		if days > 0 {
			want = 1
		}
		if n := newKept(t, pmul.ACP142, func(*pmul.Config) {}).hear(epoch, 1, expiry); n != want {
			t.Errorf("ACP 142: a message that ends %d days from now is delivered %d times, want %d", days, n, want)
		}
	}
}

// TestReceiversClock: a gateway that starts with another clock delivers no message again, and still waits for incomplete ones.
func TestReceiversClock(t *testing.T) {
	for _, days := range []int{-400, 2, 400} {
		k := newKept(t, pmul.Compact, func(*pmul.Config) {})
		expiry := epoch.Add(12 * time.Hour)
		if n := k.hear(epoch, 1, expiry); n != 1 {
			t.Fatalf("delivered %d times", n)
		}
		a, first, second := address(2, 2, 2), data(2, 1, "x"), data(2, 2, "y")
		a.Expiry = expiry
		k.do(epoch, a)
		k.do(epoch, first)
		now := epoch.AddDate(0, 0, days)
		k.restart(t)
		k.do(now, nil)
		for range 3 {
			now = now.Add(time.Minute)
			if n := k.hear(now, 1, expiry); n != 0 {
				t.Errorf("%d days: delivered again", days)
			}
		}
		if n := k.do(now, second); n != 1 {
			t.Errorf("%d days: a message whose second half came after the restart is delivered %d times", days, n)
		}
	}
}

// TestForgetsTheOldest: a Receiver that remembers as many messages as it may forgets the oldest, and continues.
func TestForgetsTheOldest(t *testing.T) {
	k := newKept(t, pmul.Compact, func(c *pmul.Config) { c.Limits.Remembered = 400 }) // 100 of one source
	now := epoch
	for id := range pmul.MessageID(1000) {
		now = now.Add(time.Minute)
		if n := k.hear(now, id, now.Add(24*time.Hour)); n != 1 {
			t.Fatalf("message %d is delivered %d times", id, n)
		}
		k.do(now.Add(30*time.Second), nil) // its Ack goes
	}
	if n := len(k.journal); n > 100 {
		t.Errorf("%d records of one source", n)
	}
	if n := k.hear(now, 990, now.Add(24*time.Hour)); n != 0 {
		t.Error("one of the newest is delivered again")
	}
}
