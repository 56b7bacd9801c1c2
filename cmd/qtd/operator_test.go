//go:build linux || darwin

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/monitor"
)

// However many sessions are ended, the daemon asks those of a request at once: programs that do not end at once keep it
// from none.
func TestEndManySessions(t *testing.T) {
	root, err := os.MkdirTemp("", "qt") // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	dir, err := rundir.Base(root).Make()
	if err != nil {
		t.Fatal(err)
	}
	l, err := rundir.Listen(filepath.Join(dir, monitor.ControlSocket))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(map[string]bool)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		if n := len(r.Form["id"]); n > monitor.MaxEnded {
			t.Errorf("a request for %d sessions", n)
		}
		var answers []monitor.Ended
		for _, id := range r.Form["id"] {
			ended[id] = true
			answers = append(answers, monitor.Ended{ID: id})
		}
		json.NewEncoder(w).Encode(answers)
	})}
	go server.Serve(l)
	defer server.Close()
	config := filepath.Join(root, "qtd.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "runtime_dir = %q\n", root), 0o600); err != nil {
		t.Fatal(err)
	}
	const sessions = 300
	args := []string{"--config", config}
	for i := range sessions {
		args = append(args, fmt.Sprintf("%032x", i))
	}
	c := endCommand()
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil || len(ended) != sessions {
		t.Errorf("%d sessions end: %v", len(ended), err)
	}
}
