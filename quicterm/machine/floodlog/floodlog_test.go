package floodlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	f := New(3)
	now := time.Unix(1_900_000_000, 0)
	for range 1000 {
		f.Limited(now, log, "refused", "client", "x")
		now = now.Add(10 * time.Millisecond)
	}
	lines := strings.Count(out.String(), "\n")
	if lines < 11 || lines > 13 {
		t.Errorf("%d lines in ten seconds, want 3 and one a second", lines)
	}
	if !strings.Contains(out.String(), "suppressed=99") {
		t.Errorf("the log does not say how many lines were suppressed:\n%s", &out)
	}
}
