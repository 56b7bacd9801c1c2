//go:build linux || darwin

package e2e

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// qtd get offers a file to the client at the keyboard, which saves it as a new one if the person there wants that.
func TestGet(t *testing.T) {
	h := newHost(t)
	h.Start()
	content := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{}).Read(content)
	h.Write("far/a report.pdf", string(content))
	h.Write("near/Downloads/a report.pdf", "before")
	cmd := h.Via(h.Addr, "connect", []string{"-t", "-s", "work"}, "exec env PS1='$ ' HISTFILE= sh")
	cmd.Env = append(cmd.Env, "HOME="+h.Path("near"))
	x := rig.Open(t, cmd)
	x.Expect(`\$ `)
	x.Send("~<")
	x.Expect(`\[qt: nothing is asked, and no file is offered: qtd get offers one, in the session\]`)
	get := h.Bin + "/qtd get '" + h.Path("far/a report.pdf") + "'"
	x.Send("\r" + get + "; echo status $?\r")
	x.Expect(`\[qt: \S+ offers a report.pdf \(3.1 MB\): ~< saves it\]`)
	x.Send("\r~<")
	x.Expect(`\[qt: \S+ offers a report.pdf \(3.1 MB\): save it to \S+/near/Downloads\? y/n, Enter leaves\]`)
	x.Send("y\r")
	x.Expect(`(?s)saved \S+/near/Downloads/a report-1.pdf.*status 0|status 0.*saved \S+/near/Downloads/a report-1.pdf`)
	got, err := os.ReadFile(h.Path("near/Downloads/a report-1.pdf"))
	if err != nil || sha256.Sum256(got) != sha256.Sum256(content) {
		t.Errorf("the file has %d bytes, %v", len(got), err)
	}
	if got := h.Read("near/Downloads/a report.pdf"); got != "before" {
		t.Errorf("the file from before has %d bytes", len(got))
	}
	x.Send(strings.Replace(get, "/qtd ", "/qt ", 1) + "; echo status $?\r")
	x.Expect(`~< saves it`)
	x.Send("\r~<")
	x.Expect(`y/n, Enter leaves`)
	x.Send("n\r")
	x.Expect(`(?s)refused.*status 1`)
	x.Send(h.Bin + "/qtd get /nowhere; echo status $?\r")
	x.Expect(`(?s)no such file.*status 1`)
	if files, _ := filepath.Glob(h.Path("near/Downloads/*")); len(files) != 2 {
		t.Errorf("there is %q", files)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	links, _ := filepath.Glob(filepath.Join(me.HomeDir, ".cache/quicterm/offer/*"))
	for _, link := range links {
		if to, _ := os.Readlink(link); strings.HasPrefix(to, h.Dir+"/") {
			t.Errorf("left is %s", link)
		}
	}
	later := "while [ ! -e " + h.Path("left") + " ]; do sleep 0.1; done; " + get + " 2>" + h.Path("said")
	x.Send("(" + later + ") & echo beg''un\r")
	x.Expect("begun")
	x.Send("\r~.")
	x.Exit()
	h.Write("left", "")
	const want = "no client is at the keyboard of this session"
	for until := time.Now().Add(rig.Patience); ; time.Sleep(20 * time.Millisecond) {
		said, _ := os.ReadFile(h.Path("said"))
		if strings.Contains(string(said), want) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("it says %q, want %q", said, want)
		}
	}
}
