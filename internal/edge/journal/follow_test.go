package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"aldis/internal/edge/atrest"
	"aldis/internal/lab/check"
)

// A journal takes over the content of another, sealed or not, with its store id and incarnation, and keeps its own identity. Until
// Finish it does not change, and the old content can be kept.
func TestRefill(t *testing.T) {
	for _, secret := range []atrest.Secret{nil, atrest.Secret("a secret of more than sixteen octets")} {
		id := Identity{Node: 2, Name: "ship"}
		open := func(dir string) *Journal {
			j, err := OpenSealed(dir, id, append(atrest.Secret(nil), secret...), nil)
			check.NoError(check.Fatal(t), err)
			return j
		}
		list := func(j *Journal) (list []string) {
			check.NoError(t, j.Load(func(bucket string, key, value []byte) error {
				list = append(list, fmt.Sprintf("%s %s %s", bucket, key, value))
				return nil
			}))
			return list
		}
		from, dir := open(filepath.Join(t.TempDir(), "from")), filepath.Join(t.TempDir(), "to")
		defer from.Close()
		check.NoError(t, from.SetIncarnation(9))
		for i := range 21 {
			check.NoError(t, from.CommitAt([]Op{{"mail", fmt.Appendf(nil, "%04d", i), []byte("text")}}, []byte("position")))
		}
		to := open(dir)
		check.NoError(t, to.SetVote([]byte("own vote")))
		check.NoError(t, to.Commit([]Op{{"old", []byte("key"), []byte("value")}}))
		fill := func() *Refill {
			r, err := to.Refill()
			check.NoError(check.Fatal(t), err)
			copied, err := from.Backup()
			check.NoError(check.Fatal(t), err)
			check.NoError(t, from.Records(copied, func(op Op) error {
				return r.Add(Op{op.Bucket, append([]byte(nil), op.Key...), append([]byte{}, op.Value...)})
			}))
			return r
		}
		fill().Abandon()
		check.Equal(t, "records after one that was abandoned", fmt.Sprint(list(to)), "[old key value]")
		old, err := fill().Finish(from.StoreID(), from.Incarnation(), []byte("own vote"), []byte("position"), true)
		check.NoError(t, err)
		_, err = os.Stat(old)
		check.NoError(t, err)
		check.NoError(t, to.Commit([]Op{{"mail", []byte("more"), []byte("text")}}))
		check.NoError(t, to.Close())
		to = open(dir)
		defer to.Close()
		vote, position := to.Pair()
		check.Equal(t, "vote and position", string(vote)+", "+string(position), "own vote, position")
		check.Equal(t, "store", to.StoreID(), from.StoreID())
		check.Equal(t, "start", to.Incarnation(), uint32(9))
		check.Equal(t, "records", fmt.Sprint(list(to)), fmt.Sprint(append(list(from), "mail more text")))
		_, err = to.Refill()
		check.NoError(t, err)
	}
}
