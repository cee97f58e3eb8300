package operator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/edge/config"
	"aldis/internal/edge/infile"
	"aldis/internal/edge/keyfile"
	"aldis/internal/link/compact"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

// corporaOrder holds the arguments of corpus send, list, save, accept and forget.
type corporaOrder struct {
	config, token, out string
	to                 []string
	asJSON             bool
}

// send makes the gateway send the file of a corpus, or without one the corpus of its configuration.
func (o *corporaOrder) send(files []string, stdout io.Writer) error {
	if len(files) == 0 {
		c, err := config.Load(o.config)
		if err != nil {
			return err
		}
		if c.Corpus.File == "" {
			return fmt.Errorf("%s has no corpus in [compact]: name the file to send", o.config)
		}
		files = []string{c.Corpus.File}
	}
	if _, err := config.LoadCorpus(files[0]); err != nil {
		return fmt.Errorf("%s %w", files[0], err)
	}
	file, err := infile.Read(files[0], cli.MostFile)
	if err != nil {
		return err
	}
	body, _ := json.Marshal(control.CorpusSend{File: file, Sites: o.to})
	d, err := DeskOf(o.config, o.token)
	if err != nil {
		return err
	}
	var sent control.CorpusSent
	answer, err := d.TalkOf(&sent, "POST", "/corpora/send", body)
	if err != nil {
		return err
	}
	if o.asJSON {
		_, err = stdout.Write(answer)
		return err
	}
	for _, s := range sent.Sites {
		fmt.Fprintf(stdout, "corpus %s, %d messages, goes to %s when nothing else is to be sent\n", sent.Name, sent.Messages, s)
	}
	_, err = fmt.Fprintln(stdout, "gateway messages --precedence deferred shows how far it is; there, gateway corpus accept "+sent.Name+" has it used")
	return err
}

// list shows the corpora that other sites have sent.
func (o *corporaOrder) list(stdout io.Writer) error {
	d, err := DeskOf(o.config, o.token)
	if err != nil {
		return err
	}
	var is control.Report
	if _, err := d.TalkOf(&is, "GET", "/status", nil); err != nil {
		return err
	}
	if o.asJSON {
		return cli.PrintJSON(stdout, is.Corpora)
	}
	names := map[uint16]string{}
	for _, p := range is.Peers {
		names[p.ID] = p.Name
	}
	in := is.Corpus
	if in == "" {
		in = "none"
	}
	fmt.Fprintf(stdout, "in use: %s\n", in)
	if a := is.Corpora.Accepted; a != "" && a != is.Corpus {
		fmt.Fprintf(stdout, "from the next start on: %s\n", a)
	}
	if len(is.Corpora.Received) == 0 {
		_, err := fmt.Fprintln(stdout, "no other site has sent one")
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "corpus\tfrom\treceived\tmessages\toctets\t")
	for _, r := range is.Corpora.Received {
		from, note := names[r.Site], ""
		if from == "" {
			from = fmt.Sprintf("node-%d", r.Site)
		}
		switch r.Name {
		case is.Corpus:
			note = "in use"
		case is.Corpora.Accepted:
			note = "accepted"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", r.Name, from, r.At.Format(time.RFC3339), r.Messages, r.Octets, note)
	}
	return w.Flush()
}

// save writes to a file, for show and compact, a corpus that another site has sent.
func (o *corporaOrder) save(name string, stdout io.Writer) error {
	d, err := DeskOf(o.config, o.token)
	if err != nil {
		return err
	}
	file, err := d.talk("GET", "/corpora/"+url.PathEscape(name), nil)
	if err != nil {
		return err
	}
	c, err := compact.ReadCorpus(file)
	if err != nil || corpusexchange.Name(c) != name {
		return fmt.Errorf("the gateway's file for %s is another corpus, or damaged", name)
	}
	if err := keyfile.Replace(o.out, string(file), 0o600); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "corpus %s is in %s: gateway corpus show --text %s shows its messages\n", name, o.out, o.out)
	return err
}

// decide gives the order accept or forget.
func (o *corporaOrder) decide(what, name string, stdout io.Writer) error {
	d, err := DeskOf(o.config, o.token)
	if err != nil {
		return err
	}
	body, _ := json.Marshal(control.CorpusOrder{Name: name})
	if _, err := d.TalkOf(&corpusexchange.Status{}, "POST", "/corpora/"+what, body); err != nil {
		return err
	}
	if what == "accept" {
		_, err = fmt.Fprintf(stdout, "corpus %s is used from the next start on: gateway drain, then restart the gateway\n", name)
	} else {
		_, err = fmt.Fprintf(stdout, "corpus %s is forgotten\n", name)
	}
	return err
}
