package drive

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// A session whose program has ended with status 0 says so: a script that reads the JSON finds the status, and Run does
// not say that another program is in the foreground.
func TestEnded(t *testing.T) {
	ended := &Terminal{over: true, screen: screen.New(80, 24, screen.Limits{})}
	m, err := ended.Wait(t.Context(), Condition{Kind: Exit})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"condition":"exit","row":0,"next":0,"status":0}`
	if got, err := json.Marshal(m); err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if _, _, err := ended.Run(t.Context(), Line{Text: "true"}, io.Discard); !errors.As(err, new(*ExitError)) {
		t.Errorf("Run: %v, want an ExitError", err)
	}
}
