//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quicterm/quicterm/bench/netem"
)

// Tools that run ssh work with qt in its place.
func TestTools(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	content := random(1 << 20)
	h.Write("src/a file", string(content))
	h.Write("src/dir/b", "b\n")
	qt := fmt.Sprintf("%s connect -F %s -p %d", filepath.Join(bin, "qt"), h.Path("ssh_config_user"), p.Addr().Port())
	shell := func(t *testing.T, script string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = h.Dir
		cmd.Env = append(h.Env(), "QT="+qt, "GIT_SSH_COMMAND="+qt,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	h.Via(p.Addr(), "connect", nil) // writes the client's settings, and ssh's
	same := func(t *testing.T, dir string) {
		t.Helper()
		got, err := os.ReadFile(h.Path(dir + "/a file"))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes, %v; want the %d of the source", len(got), err, len(content))
		}
	}
	t.Run("tar", func(t *testing.T) {
		shell(t, fmt.Sprintf("mkdir tar; tar c -C src . | $QT 127.0.0.1 tar x -C %s/tar", h.Dir))
		same(t, "tar")
	})
	t.Run("rsync", func(t *testing.T) {
		if _, err := exec.LookPath("rsync"); err != nil {
			t.Skip("rsync is not installed")
		}
		shell(t, fmt.Sprintf(`rsync -a -e "$QT" src/ %s@127.0.0.1:%s/rsync/`, accountName(t), h.Dir))
		same(t, "rsync")
	})
	t.Run("git", func(t *testing.T) {
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("git is not installed")
		}
		shell(t, fmt.Sprintf(`
git init -q --bare repo.git
cd src && git init -q . && git add . && git commit -qm first
git push -q "127.0.0.1:%[1]s/repo.git" HEAD:main
cd .. && git clone -q -b main "127.0.0.1:%[1]s/repo.git" clone`, h.Dir))
		same(t, "clone")
	})
	t.Run("head", func(t *testing.T) {
		shell(t, `test "$($QT 127.0.0.1 yes | head -1)" = y`)
	})
}
