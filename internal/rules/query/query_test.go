package query_test

import (
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/query"
)

const event = `<?xml version="1.0" encoding="ISO-8859-1"?><!-- <event type="no"/> -->
<cot:event xmlns:cot='x' type='a-f-G-U' uid="U-7"><point lat="1"/><detail><contact callsign="FOX 1"/><contact callsign="HARE 2"/>
<remarks>fire <b>in</b> the <![CDATA[<hold>]]> &amp; aft</remarks><empty/></detail></cot:event>`

func TestFits(t *testing.T) {
	track := `{"track":{"id":4711,"name":"odd \"one\"","on":true,"legs":[{"to":"A"},{"to":"B"}]},"id":"outer"}`
	for _, c := range []struct {
		condition, content string
		want               bool
	}{
		{"xml:/event/@type", event, true}, {"xml:/event/@type = a-f-*", event, true}, {"xml:/event/@type=a-h-*", event, false},
		{"xml:/cot:event/@uid = U-7", event, true}, {"xml:/other:event/@uid", event, false}, {"xml:/event/detail/contact/@callsign = HARE*", event, true},
		{"xml:/event/contact/@callsign", event, false}, {"xml:/*/*/contact/@callsign = FOX 1", event, true}, {"xml:/event/detail/remarks = *<hold> & aft", event, true},
		{"xml:/event/detail/empty", event, true}, {"xml:/event/detail/empty = x", event, false}, {"xml:/event/detail/none", event, false},
		{"xml:/contact", event, false}, {"xml:/event/@type", "no XML at all", false}, {"xml:/event/@type", event[:len(event)-20], true},
		{"json:/track/id", track, true}, {"json:/track/id = 47*", track, true}, {"json:/track/id = 48*", track, false}, {"json:/id = outer", track, true},
		{"json:/track/name = *\"one\"", track, true}, {"json:/track/on = true", track, true}, {"json:/track/legs/to = B", track, true},
		{"json:/*/id = 4711", track, true}, {"json:/track", track, true}, {"json:/legs", track, false}, {"json:/track/id", "{broken", false},
		{"json:/a", `{"a":null}`, false}, {"json:/a = *nil*", `{"a":null}`, false}, {"json:/a", `{"a":[null,"x"]}`, true}, {"json:/a = x", `{"a":[null,"x"]}`, true},
		{"json:/a", `{"a":"null"}`, true},
		{"json:/track/id", track[:30], true}, {"text: *MAYDAY*", "help MAYDAY MAYDAY", true}, {"text: MAYDAY", "help MAYDAY", false},
	} {
		q, err := query.Parse(c.condition)
		if check.NoError(t, err) {
			check.Equal(t, c.condition+" in "+c.content[:min(len(c.content), 30)], q.Fits([]byte(c.content), filter.Match), c.want)
		}
		again, err := query.Parse(q.String())
		check.NoError(t, err)
		check.True(t, "written and read again", again == q, q.String())
	}
	check.True(t, "none fits all", query.Condition{}.Fits(nil, filter.Match))
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "xml", "xml:", "xml:event", "xml:/", "xml:/a//b", "xml:/a/@", "xml:/@b", "xml:/@b/c", "yaml:/a", "text:", "json:a", "json:/a/@b", "xml:/a b",
		"xml:" + strings.Repeat("/a", query.MostDepth+1)} {
		_, err := query.Parse(text)
		check.True(t, text+" is refused", err != nil)
	}
}

// Whatever a message has in it, looking into it ends, in bounded time.
func FuzzFits(f *testing.F) {
	f.Add("xml:/event/@type", event)
	f.Add("json:/a/b", `{"a":[[[{"b":1}]]]}`)
	f.Add("json:/a", strings.Repeat("[", 200))
	f.Add("xml:/a/a", strings.Repeat("<a>", 200))
	f.Fuzz(func(t *testing.T, condition, content string) {
		if q, err := query.Parse(condition); err == nil {
			q.Fits([]byte(content), filter.Match)
		}
	})
}
