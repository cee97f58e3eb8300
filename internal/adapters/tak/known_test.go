package tak

import (
	"aldis/internal/adapters/files"
	"testing"

	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// The flows of the adapter's topics are defined in a few octets: the names here are those for which package envelope has numbers.
func TestFlowsAreKnown(t *testing.T) {
	for topic, name := range map[string]string{topicUnits: topicUnits, topicEvent: "a-u-G", topicAsk: topicAsk, files.TopicWant: files.TopicWant, files.TopicPart: files.TopicPart,
		topicChat: "b-t-f", topicReceipt: "r"} {
		m := site.Message{Adapter: site.TAK, Published: true, Scope: scope, Topic: topic, Parts: []site.Part{{Name: name}}}
		b, err := envelope.AppendCoded(nil, envelope.Message{Payload: &m}, 1, true, &envelope.Texts{Coder: &compact.Coder{}})
		if err != nil || len(b) > 20 {
			t.Errorf("the flow of %s takes %d octets: it is spelt out (%v)", topic, len(b), err)
		}
	}
}
