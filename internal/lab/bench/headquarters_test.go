package bench

import (
	"context"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// Ships and peers of HQ talk while its leader is killed: no accepted message is lost, and none comes twice except as a copy that peers
// recognise.
func TestHQLosesItsLeader(t *testing.T) {
	report := &Report{}
	s := &session{run: &run{Config: Config{Gateway: gatewayBinary(t), Quick: true, Progress: func(text string) { t.Log(text) }}, dir: t.TempDir(), report: report, pace: 1}, bench: "site", where: gatewayThree}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	check.NoError(check.Fatal(t), deathsOfHQ(ctx, s, 8, 2))
	check.Equal(t, "rows", len(report.Rows), 2)
	for _, row := range report.Rows {
		t.Log(row.line(), row.cell(), row.Note)
		check.Equal(t, "lost: "+row.line(), row.Lost, 0)
	}
	check.Equal(t, "twice", report.Rows[1].Value, 0)
}
