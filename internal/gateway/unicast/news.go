package unicast

import (
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// While messages flow to a peer, news of this site gets a share of the rate (profile, state_share_percent) and half of
// the window: fifty peers that join at once must not hold up a report. Without messages the news has it all.
const newsAside = time.Minute // after the last message they still flow

// news counts the octets that were spent on telling a peer of this site.
type news struct {
	payloadAt time.Time // of the last message sent
	debt      float64   // octets beyond the share
	paid      time.Time // debt is as of then
}

// charge notes how many octets of state, in frames, went in one datagram, and whether a message did. share is in octets per second, 0 for
// everything.
func (n *news) charge(now time.Time, share float64, state int, payload bool) {
	if payload {
		n.payloadAt = now
	}
	if state > 0 && share > 0 {
		n.debt = max(0, n.debt-share*now.Sub(n.paid).Seconds()) + float64(state)
		n.paid = now
	}
}

// flows says whether messages flow.
func (l *peerLink) flows(now time.Time) bool {
	return l.first(frame.Direct) != nil || !l.news.payloadAt.IsZero() && now.Before(l.news.payloadAt.Add(newsAside))
}

// shareOf is how much news may take, in octets per second; 0 is everything.
func (c *Carrier) shareOf(l *peerLink) float64 {
	_, rate := l.Air()
	return float64(rate) / 8 * c.Profile.StateShare / 100
}

// tells says whether the carrier tells a peer of this site.
func tells(l *peerLink) bool { return l.of.Messages && (l.of.Tells == nil || l.of.Tells(l.ID)) }

// mayTell says whether news may go now, and if not when (zero: when something that is under way has arrived).
func (c *Carrier) mayTell(now time.Time, l *peerLink) (bool, time.Time) {
	if !tells(l) {
		return false, time.Time{}
	}
	share := c.shareOf(l)
	if share == 0 || !l.flows(now) {
		return true, time.Time{}
	}
	if l.Box.Flying(frame.Direct) >= max(1, c.Profile.Window/2) {
		return false, time.Time{}
	}
	left := l.news.debt - share*now.Sub(l.news.paid).Seconds()
	if left <= 0 {
		return true, time.Time{}
	}
	return false, now.Add(time.Duration(left/share*float64(time.Second)) + time.Millisecond)
}

// addNews puts changes of the site's state into a datagram.
func (c *Carrier) addNews(now time.Time, l *peerLink, to *datagramBuilder) bool {
	for n := 8; n > 0; n /= 2 {
		items := c.Replica.Next(now, l.ID, n)
		if len(items) == 0 {
			return false
		}
		content, items := c.Services.News(now, l.Peer, items)
		m, err := c.Store.New(content, mail.KindOf(content.Items))
		if err != nil {
			if len(items) > 1 {
				continue // one of fewer may be the only one that cannot be sent
			}
			c.Services.Note("warn", "a local advertisement or group cannot be sent to a peer", "peer", l.Name, "error", err)
			for _, it := range items {
				c.Replica.Put(it.Withdrawal())
			}
			return false
		}
		if c.queueOf(l, m) == frame.Bulk {
			if n > 1 {
				continue
			}
			// It counts as on its way from now on, so that it is not sent twice. It gets its number when there is air.
			if l.Box.First(frame.Bulk) == nil && c.Store.Wait(now, l.Peer, m, frame.Bulk, l.history) != nil {
				c.Replica.Sent(l.ID, m.ID, items)
			}
			return false
		}
		if c.addData(now, l, to, mail.TransmissionID{Queue: frame.Direct, Number: l.sender.Next(frame.Direct)}, m, m.Kind) {
			c.Replica.Sent(l.ID, m.ID, items)
			return true
		}
		if to.carriesData() {
			return false // the next datagram has room
		}
	}
	return false
}
