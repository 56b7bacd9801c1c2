//go:build linux || darwin

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
)

func TestMain(m *testing.M) {
	// A daemon that a test has started, or one of its processes: these must not run the tests again.
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}

// The log of a daemon that a grant started is put aside while the daemon runs.
func TestGrantedLogIsBounded(t *testing.T) {
	base := t.TempDir()
	config := filepath.Join(base, "qtd.toml")
	content := "runtime_dir = \"" + filepath.Join(base, "run") + "\"\nstate_dir = \"" + filepath.Join(base, "state") + "\"\n"
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := configs.LoadServer(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := startGranted(settings, config); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(settings.RuntimeDir, strconv.Itoa(os.Geteuid()))
	lock, err := os.ReadFile(filepath.Join(dir, "qtd.lock"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(lock)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		syscall.Kill(pid, syscall.SIGTERM)
		for err := error(nil); err == nil; time.Sleep(time.Millisecond) { // its directories are removed next
			syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			err = syscall.Kill(pid, 0)
		}
	}()
	f, err := appendTo(filepath.Join(dir, grantedLog))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(bytes.Repeat([]byte("a line of the log\n"), maxLog/10)); err != nil {
		t.Fatal(err)
	}
	if _, err := bootstrap.Ask(settings.RuntimeDir, nil); err != nil { // the daemon logs that
		t.Fatal(err)
	}
	aside := filepath.Join(dir, grantedLog+".old")
	for _, err := os.Stat(aside); err != nil; _, err = os.Stat(aside) {
		if t.Context().Err() != nil || !os.IsNotExist(err) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}
