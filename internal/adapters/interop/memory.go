package interop

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aldis/internal/site"
)

// ErrMemory says that a memory is of another format.
var ErrMemory = errors.New("meet: memory of another format")

// keyLine is the key of a line that waits for JXTA peers; its token follows.
const keyLine = "l"

// kept is a line that waits for JXTA peers.
type kept struct {
	Message site.Message
	Until   time.Time
}

func lineKey(token uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(keyLine), token))
}

// remember saves a line, so that it survives a restart.
func (s *jxtaSide) remember(m *site.FarMessage) {
	value, err := json.Marshal(kept{m.Message, m.Until})
	if err != nil {
		panic("meet: memory of plain values: " + err.Error())
	}
	s.met.Remember = append(s.met.Remember, site.Memory{Key: lineKey(m.Token), Value: value})
}

func (s *jxtaSide) forget(token uint64) {
	s.met.Remember = append(s.met.Remember, site.Memory{Key: lineKey(token)})
}

// restore reads the memories of an earlier run.
func (s *jxtaSide) restore(memories []site.Memory) error {
	for _, m := range memories {
		var k kept
		if len(m.Key) != 1+8 || m.Key[:1] != keyLine || json.Unmarshal(m.Value, &k) != nil {
			return fmt.Errorf("%w: %q", ErrMemory, m.Key)
		}
		token := binary.BigEndian.Uint64([]byte(m.Key[1:]))
		s.waiting[token] = &site.FarMessage{Site: Here, Token: token, Message: k.Message, Until: k.Until}
		s.next = max(s.next, token&(1<<48-1))
	}
	return nil
}
