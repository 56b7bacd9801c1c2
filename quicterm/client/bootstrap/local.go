package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// ErrNoProgram means that qtd is not installed on this machine.
var ErrNoProgram = errors.New("there is no qtd on this machine")

// Local is the source of grants for our account on this machine. It runs the qtd beside
// our own program, or else the one in PATH.
type Local struct {
	Say func(string) // shows the user a warning of the first grant, before a session; nil shows nothing

	granted atomic.Bool
}

// Grant implements [Source].
func (l *Local) Grant(ctx context.Context) (*wire.Grant, error) {
	name := "qtd"
	if exe, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(exe), name)
		if _, err := os.Stat(beside); err == nil {
			name = beside
		}
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, "grant")
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, ErrNoProgram
	}
	if err != nil {
		text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "qtd: ")
		if text == "" {
			text = err.Error()
		}
		return nil, fmt.Errorf("no daemon on this machine: %s", text)
	}
	grant, err := ReadLine(&out)
	if err == nil && !l.granted.Swap(true) && grant.Warning != "" && l.Say != nil {
		l.Say("qt: " + grant.Warning)
	}
	return grant, err
}
