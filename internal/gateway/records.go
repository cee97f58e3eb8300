package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// buckets are all buckets that a gateway may have written, and what a record of each is. %s is the peer in the key.
var buckets = map[string]string{
	keys.BucketSeal:   "what was heard from %s, which refuses old datagrams",
	bucketCopy:        "what %s holds of this site",
	bucketDeliver:     "a message from %s for a local peer",
	bucketStored:      "that %s has a message of this site",
	bucketFar:         "what is known of the site of %s",
	bucketOwn:         "what this site tells the others",
	bucketBridge:      "what the JXTA side remembers",
	bucketAdapter:     "what a LAN side remembers",
	bucketSilence:     "the order of silence",
	keys.BucketRoster: "a roster: who belongs to the network",
	bucketStanding:    "the order to hold a precedence",
	bucketRollup:      "what a gateway of the fleet said of itself last",
	bucketBill:        "the bill of a month",
	bucketDay:         "the octets of a day on a link",
	bucketDirect:      "since when there is a direct session with %s",
	bucketEmptied:     "numbers of %s under which nothing was said",
	"mail":            "a message of this site",
	"to":              "that a message is for %s",
	"ordered":         "what was ordered of a message for %s",
	"peer":            "the numbers of %s",
	"first":           "the first number of a start towards %s",
	"path":            "the addresses of %s",
	"flow":            "a flow of messages to %s",
	"norm":            "how often libnorm was started",
	"early":           "a message from %s before its turn",
	"cut":             "that a segment of a message is under way to %s",
	"coded":           "a long message as it goes to %s",
	"piece":           "a segment of a message from %s",
	"inflow":          "a flow of messages from %s",
	"before":          "a message from %s that others are coded after",
	"mul-flow":        "a flow of messages over P_Mul",
	"mul-next":        "the next number of %s over P_Mul",
	"mul-acked":       "what %s has acknowledged over P_Mul",
	"mul-ended":       "a message over P_Mul that has ended",
	"mul-early":       "a message over P_Mul before its turn",
	"waiting":         "a message for %s, of version 0.1",
	"out":             "a message for %s, of version 0.1",
	"mul-out":         "a message over P_Mul, of version 0.1",
	"pmul-in":         "a message that comes in over P_Mul",
	"pmul-frag":       "a part of a message over P_Mul",
	"pmul-fec":        "parity of a message over P_Mul",
	"pmul-done":       "a message that came over P_Mul",
	"pmul-out":        "a message that goes out over P_Mul",
	"pmul-begun":      "that a message over P_Mul has been on the air",
	"pmul-fate":       "what has become of a message over P_Mul",
	"pmul-node":       "a node of P_Mul",
	bucketHeld:        "a message that this gateway passes on",
	"end":             "what %s and this gateway know of each other through relays",
	"end-set":         "recipients of what relays pass on",
	"end-flow":        "a flow of messages that relays pass on",
	"end-out":         "since when a relay has a message for %s",
	"end-in":          "what has come from %s through relays",
	"end-hop":         "which relay %s was last heard through",
	"end-early":       "a message from %s before its turn, through relays",
	bucketGroup:       "that this gateway is in a group, or has left it",
	bucketOpen:        "an open message of a group, or which were received",
	bucketGroupKeys:   "the keys of a group, and who is in it",
	bucketUnread:      "that an open message cannot be read yet: its key or its names are not here",
	bucketKeyless:     "an open message of this site that waits for a key",
	bucketIdentity:    "who the gateway is to JXTA peers",
}

// bucketIdentity is that of internal/operator/node.
const bucketIdentity = "identity"

// Buckets are the names of all buckets that a gateway may have written.
func Buckets() []string {
	list := make([]string, 0, len(buckets))
	for name := range buckets {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Spare says whether a gateway can do without a single record of a bucket: what is lost with it can be named, and nothing
// else goes wrong. Without a record of another bucket something would silently go wrong: numbers that both ends count, the
// refusal of old datagrams, silence.
func Spare(bucket string) bool {
	switch bucket {
	case "mail", "mul-ended", "path", bucketDeliver, bucketHeld, bucketOpen, bucketKeyless, bucketStored, bucketOwn, bucketFar, bucketCopy, bucketBridge, bucketAdapter, bucketBill:
		return true
	}
	return false
}

// Words says what a record is. records are those of the journal: a message is in one, its recipients are in others.
func Words(bucket string, key []byte, records []api.Record) string {
	words, ok := buckets[bucket]
	if !ok {
		return "of no known kind"
	}
	if strings.Contains(words, "%s") {
		peer := "a peer"
		if len(key) >= 2 {
			peer = fmt.Sprintf("peer %d", binary.BigEndian.Uint16(key))
		}
		words = fmt.Sprintf(words, peer)
	}
	if bucket != "mail" {
		return words
	}
	var to []string
	for _, r := range records {
		if r.Bucket == "to" && len(r.Key) == 10 && slices.Equal(r.Key[2:], key) {
			to = append(to, fmt.Sprint(binary.BigEndian.Uint16(r.Key)))
		}
	}
	if len(to) == 0 {
		return words
	}
	return "a message for peer " + strings.Join(to, ", ")
}

// refuse goes on without a record, or says why that cannot be.
func (c *Config) refuse(r api.Record, err error) error {
	if c.Refused == nil || !Spare(r.Bucket) && !errors.Is(err, mail.ErrContent) {
		return fmt.Errorf("%w (bucket %s, key %x: %s); restore a backup, or go on with what can be used: gateway journal repair --force",
			err, r.Bucket, r.Key, Words(r.Bucket, r.Key, nil))
	}
	c.Refused(r, err)
	return nil
}

// Kept is what AsNewStore leaves of a journal.
type Kept struct {
	Records []api.Record
	Waiting int  // messages for a peer that go for the first time
	Again   int  // messages for a peer that were under way: they may arrive twice
	Dropped int  // records of numbers towards peers, which are no longer believed
	Silent  bool // it starts silent
	Known   bool // to JXTA peers: its identity is there
}

// ofBearers are the buckets of bearers behind the first that AsNewStore keeps. What is known of peers there begins anew.
var ofBearers = []string{mail.BucketEarly, "inflow", "path", bucketDay, bucketBill}

// AsNewStore removes from the records of a journal those that are bound to numbers that its peers count as well. With a new
// store id the peers send again the messages that they hold, and messages of this site go under new numbers. lost: records of a
// bucket may be missing. Where an order of silence may be missing, the gateway is silent until somebody orders otherwise.
func AsNewStore(records []api.Record, lost func(bucket string) bool) (k Kept) {
	ordered := false
	met := map[uint16]bool{} // peers, and whether their record is there
	for _, r := range records {
		if len(r.Key) >= 2 && (r.Bucket == keys.BucketSeal || r.Bucket == bucketFar || r.Bucket == "to") {
			if id := binary.BigEndian.Uint16(r.Key); !met[id] {
				met[id] = false
			}
		}
		bucket, bearer, _ := strings.Cut(r.Bucket, onBearer)
		if bearer != "" && !slices.Contains(ofBearers, bucket) {
			k.Dropped++
			continue
		}
		switch bucket {
		case "to":
			if len(r.Key) != 10 {
				k.Dropped++
				continue
			}
			if len(r.Value) >= 18 && binary.BigEndian.Uint64(r.Value[1:]) == 0 {
				k.Waiting++
			} else {
				k.Again++
			}
			r.Value = waits(r)
		case "out": // of version 0.1, as the others that wait
			if len(r.Key) != 11 {
				k.Dropped++
				continue
			}
			r.Bucket, r.Key = "waiting", slices.Concat(r.Key[:2], []byte{0, 0}, r.Key[2:3], r.Key[6:])
			k.Again++
		case "waiting", "mail", "ordered", bucketStanding, bucketRollup, bucketBill, bucketDay, bucketHeld, bucketKeyless, "path", bucketOwn, bucketFar, bucketBridge, bucketAdapter, bucketDeliver, keys.BucketRoster:
		case mail.BucketEarly:
			// Its sender was told over P_Mul that it is here, and sends it no more. In the other queues it is sent anew.
			if len(r.Key) <= 2 || frame.Queue(r.Key[2]) != mail.Group {
				k.Dropped++
				continue
			}
		case "inflow": // the flows of early messages
		case bucketIdentity:
			k.Known = true
		case "peer":
			value, ok := carriage.Renumbered(r.Value)
			if !ok {
				k.Dropped++
				continue
			}
			r.Value = value
			if len(r.Key) == 2 {
				met[binary.BigEndian.Uint16(r.Key)] = true
			}
		case keys.BucketSeal:
			if _, err := seal.ParsePeerState(r.Value); err != nil {
				k.Dropped++
				continue
			}
		case bucketSilence:
			s, err := parseSilence(r.Value)
			if err != nil {
				continue
			}
			if string(r.Key) == "self" { // else of one bearer
				ordered, k.Silent = true, s.on
			}
		default:
			k.Dropped++
			continue
		}
		k.Records = append(k.Records, r)
	}
	for id, there := range met {
		if there || !lost("peer") {
			continue
		}
		// The record of its seal goes with that of its numbers: a peer known by its seal alone could go on with its old numbers.
		k.Records = slices.DeleteFunc(k.Records, func(r api.Record) bool {
			return r.Bucket == keys.BucketSeal && slices.Equal(r.Key, peerKey(id, nil))
		})
		k.Records = append(k.Records, api.Record{Bucket: "peer", Key: peerKey(id, nil), Value: carriage.Forgotten()})
	}
	if lost(bucketSilence) && !ordered {
		k.Silent = true
		k.Records = append(k.Records, api.Record{Bucket: bucketSilence, Key: []byte("self"), Value: silentUntilOrdered})
	}
	return k
}

// waits is the record of a recipient whose message has no number: it keeps its place in the queue.
func waits(r api.Record) []byte {
	value := make([]byte, 18)
	copy(value[9:], r.Key[2:]) // the order in which messages were accepted
	if len(r.Value) >= 18 && binary.BigEndian.Uint64(r.Value[9:]) != 0 {
		copy(value[9:], r.Value[9:17])
	}
	return value
}
