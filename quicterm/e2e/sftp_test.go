//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// sftpBy has the sftp of OpenSSH run a batch of its commands over qt sftp-pipe.
func sftpBy(t *testing.T, h *rig.Host, batch string) (out string, err error) {
	t.Helper()
	if _, err := exec.LookPath("sftp"); err != nil {
		t.Skip(err)
	}
	pipe := h.QT("sftp-pipe")
	h.Write("pipe", "#!/bin/sh\nexec '"+strings.Join(pipe.Args, "' '")+"'\n")
	if err := os.Chmod(h.Path("pipe"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sftp", "-q", "-b", "-", "-D", h.Path("pipe"))
	cmd.Env, cmd.Dir, cmd.Stdin = pipe.Env, h.Dir, strings.NewReader(batch)
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// The sftp of OpenSSH works over qt, with the rights of the account.
func TestSFTPPipe(t *testing.T) {
	h := newHost(t)
	h.Start()
	in := random(3 << 20)
	h.Write("in", string(in))
	there := t.TempDir()
	batch := fmt.Sprintf("put in %[1]s/a\nmkdir %[1]s/d\nrename %[1]s/a %[1]s/d/b\nsymlink b %[1]s/d/l\nget %[1]s/d/l out\nls -l %[1]s/d\n", there)
	out, err := sftpBy(t, h, batch)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := os.ReadFile(h.Path("out"))
	if err != nil || !bytes.Equal(got, in) {
		t.Errorf("%d bytes came back, not the %d that were sent: %v", len(got), len(in), err)
	}
	if scp, err := exec.LookPath("scp"); err == nil {
		cmd := exec.Command(scp, "-q", "-S", h.Path("pipe"), "in", "host:"+there+"/by-scp")
		cmd.Env, cmd.Dir = h.Env(), h.Dir
		out, err := cmd.CombinedOutput()
		if got, missing := os.ReadFile(there + "/by-scp"); err != nil || missing != nil || !bytes.Equal(got, in) {
			t.Errorf("scp -S: %v, %s", err, out)
		}
	}
	if out, err := sftpBy(t, h, "get "+there+"/none\n"); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("a file that is not there: %v, %s", err, out)
	}
	awaitList(t, h, "^ID.*\n$") // a side pipe is no session
}
