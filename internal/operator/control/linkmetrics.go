package control

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
)

var (
	descLinkState = desc("link_state",
		"1 for the state of the link to a peer, 0 for the others: unknown (never heard in this run), unmet (never heard, nor asked: neither site has anything for the other), up, silent (does not answer: alert on this), listening (announced that it will not answer), gone (not in the roster).",
		"peer", "state")
	descLinkSince = desc("link_state_since_timestamp_seconds", "Time at which the link to a peer entered its state.", "peer")
	descLinkRate  = desc("link_rate_bytes_per_second", "Rate of the link at this end by its profile: sent, received. 0 is unlimited.", "direction")

	descDiffers = desc("link_differs", "1 while messages show that the link to a peer differs from its profile: rate (slower, over P_Mul also faster), delay, loss.", "peer", "what")
	descPace    = desc("link_pace_bytes_per_second", "Pace of sending to a peer while its link is slower than the profile says; absent otherwise.", "peer")

	descSilence    = desc("silence", "1 while this gateway transmits nothing (EMCON).")
	descSilenceEnd = desc("silence_end_timestamp_seconds", "When the silence ends; absent without a silence or an end.")

	descQueue       = desc("queue_messages", "Messages that wait for a peer; a precedence without any is absent.", "peer", "precedence")
	descQueueBytes  = desc("queue_bytes", "Octets of the messages that wait for a peer, as journalled.", "peer", "precedence")
	descLate        = desc("queue_late_messages", "Waiting messages that will expire before they arrive, by forecast.", "peer")
	descQueueOldest = desc("queue_oldest_timestamp_seconds", "Time at which the oldest waiting message was accepted; the start where that is unknown.", "peer", "precedence")
	descDelay       = desc("delivery_seconds", "Seconds from acceptance here to the acknowledgement of the far gateway, for messages accepted in this run.", "peer")
)

// silenceEnd is when a silence ends; zero: it has no end.
func silenceEnd(s api.SilenceStatus) time.Time {
	at, err := time.Parse(time.RFC3339, s.Until)
	if err != nil {
		return time.Time{}
	}
	return at
}

// linkStates are the values of api.PeerStatus.Link.
var linkStates = [...]string{"unknown", "unmet", "up", "silent", "listening", "gone"}

// link sends the metrics of the link to a sister gateway, and of the messages that wait for it.
func link(ch chan<- prometheus.Metric, p api.PeerStatus, gauge gauger) {
	for _, state := range linkStates {
		gauge(descLinkState, truth(p.Link == state), p.Name, state)
	}
	if !p.LinkSince.IsZero() {
		gauge(descLinkSince, float64(p.LinkSince.Unix()), p.Name)
	}
	for _, what := range api.Differences {
		gauge(descDiffers, truth(slices.Contains(p.Measured.Differs, what)), p.Name, what)
	}
	gauge(descLate, float64(p.Late.Messages), p.Name)
	if p.Measured.PaceBps > 0 {
		gauge(descPace, float64(p.Measured.PaceBps)/8, p.Name)
	}
	for _, q := range p.Queue {
		gauge(descQueue, float64(q.Messages), p.Name, q.Precedence)
		gauge(descQueueBytes, float64(q.Octets), p.Name, q.Precedence)
		gauge(descQueueOldest, float64(q.Oldest.Unix()), p.Name, q.Precedence)
	}
	buckets, below := map[float64]uint64{}, uint64(0)
	for i, bound := range api.DelayBounds {
		below += p.Delays.Counts[i]
		buckets[bound] = below
	}
	ch <- prometheus.MustNewConstHistogram(descDelay, p.Delays.Count, p.Delays.SumS, buckets, p.Name)
}

// ends sends the metrics of this end of the link.
func ends(s api.Status, gauge gauger) {
	gauge(descLinkRate, float64(s.Link.SendBps)/8, "sent")
	gauge(descLinkRate, float64(s.Link.ReceiveBps)/8, "received")
	gauge(descSilence, truth(s.Silence.On))
	if until := silenceEnd(s.Silence); s.Silence.On && !until.IsZero() {
		gauge(descSilenceEnd, float64(until.Unix()))
	}
}
