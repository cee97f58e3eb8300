package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/operator/control"
)

// whole is the complete status, beyond the link's.
func (r *running) whole(t *testing.T) (report control.Report) {
	t.Helper()
	_, body := r.get("/status")
	check.NoError(check.Fatal(t), json.Unmarshal([]byte(body), &report))
	return report
}

// One gateway gets a corpus and sends it to the other, which is killed with kill -9 meanwhile. There the operator looks at it and
// accepts it, and from the next start on both code with it. Only users that may give orders get the file.
func TestCorporaOfRealGateways(t *testing.T) {
	t.Parallel()
	sa := newSite(t, 1, "")
	sb := newSite(t, 2, sa.key())
	r := rand.New(rand.NewPCG(1, 2))
	var messages [][]byte
	for range 100 {
		m := make([]byte, 600) // that nothing can compress
		for i := range m {
			m[i] = byte(r.Uint32())
		}
		messages = append(messages, m)
	}
	file, err := compact.AppendCorpus(nil, append(messages, []byte("##DRAUGHT fore=7.2 aft=7.9##")))
	check.NoError(check.Fatal(t), err)
	corpus := filepath.Join(sa.dir, "net.corpus")
	check.NoError(check.Fatal(t), os.WriteFile(corpus, file, 0o600))
	read, err := compact.ReadCorpus(file)
	check.NoError(check.Fatal(t), err)
	name := corpusexchange.Name(read)

	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	text, err := os.ReadFile(sa.file)
	check.NoError(check.Fatal(t), err)
	check.NoError(check.Fatal(t), os.WriteFile(sa.file, append(text, "[compact]\ncorpus = \"net.corpus\"\n"...), 0o600))
	sb.write(t, filepath.Join(sb.dir, "data"), "1 "+sa.link)
	a, b := sa.start(t), sb.start(t)
	a.until(t, "its peer is up", func() bool { return a.peer(t).Link == "up" })

	code, _, errs := run(t, "corpus", "send", "-c", sb.file, "--to", "node1")
	check.True(t, "one without a corpus has none to send", code != 0 && strings.Contains(errs, "has no corpus in [compact]"), errs)
	code, _, errs = run(t, "corpus", "send", "-c", sa.file, "--to", "nobody")
	check.True(t, "an unknown site", code != 0 && strings.Contains(errs, "neither name nor id of a [[link.peer]]"), errs)
	code, out, errs := run(t, "corpus", "send", "-c", sa.file, "--to", "node2")
	check.Equal(check.Fatal(t), errs, code, 0)
	wants(t, out, "corpus "+name+", 101 messages, goes to node2", "gateway corpus accept "+name)
	a.until(t, "it is under way", func() bool { return a.peer(t).UnderWay > 0 })
	_, out, errs = run(t, "messages", "-c", sa.file, "--precedence", "deferred")
	wants(t, out+errs, "deferred")
	b.stop(t, syscall.SIGKILL)
	b = sb.start(t)
	b.until(t, "it is there", func() bool { return len(b.whole(t).Corpora.Received) == 1 })
	a.until(t, "and known to be", func() bool { return strings.Contains(a.logged(), "a site has received the network's corpus") })
	b.stop(t, syscall.SIGKILL)
	b = sb.start(t)

	code, out, errs = run(t, "corpus", "list", "-c", sb.file)
	check.Equal(t, errs, code, 0)
	wants(t, out, "in use: none", name, "node1", "101")
	_, out, _ = run(t, "status", "-c", sb.file)
	wants(t, out, "corpus "+name+" was sent by site 1 and is not used")
	status, _ := b.get("/corpora/" + name)
	check.Equal(t, "over HTTP nobody gets it", status, 403)
	saved := filepath.Join(sb.dir, "theirs.corpus")
	code, _, errs = run(t, "corpus", "save", name, "-c", sb.file, "-o", saved)
	check.Equal(t, errs, code, 0)
	got, _ := os.ReadFile(saved)
	check.True(t, "the same file", string(got) == string(file))
	code, out, _ = run(t, "corpus", "show", "--text", saved)
	check.True(t, "it can be looked at", code == 0 && strings.Contains(out, "##DRAUGHT"))

	code, _, errs = run(t, "corpus", "accept", "01234567", "-c", sb.file)
	check.True(t, "one that is not there", code != 0 && strings.Contains(errs, "no corpus"), errs)
	code, out, errs = run(t, "corpus", "accept", name, "-c", sb.file)
	check.Equal(t, errs, code, 0)
	wants(t, out, "used from the next start on")
	_, out, _ = run(t, "corpus", "list", "-c", sb.file)
	wants(t, out, "in use: none", "from the next start on: "+name)
	_, out, _ = run(t, "status", "-c", sb.file)
	wants(t, out, "corpus "+name+" is used from the next start on")
	b.stop(t, syscall.SIGKILL)
	b = sb.start(t)
	check.Equal(t, "in use", b.whole(t).Status.Corpus, name)
	a.until(t, "both have it", func() bool { return a.whole(t).Peers[0].Corpus == name })
	_, out, _ = run(t, "audit", "show", "-c", sb.file)
	wants(t, out, "corpus accept", name)

	code, _, errs = run(t, "corpus", "forget", name, "-c", sb.file)
	check.Equal(t, errs, code, 0)
	b.stop(t, syscall.SIGTERM)
	b = sb.start(t)
	check.Equal(t, "not in use any more", b.whole(t).Status.Corpus, "")
	check.Equal(t, "nor here", len(b.whole(t).Corpora.Received), 0)
}
