//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// pastes returns the directory of what the account that runs the tests has pasted, which it makes. It skips a test that
// would remove what somebody has pasted there.
func pastes(t *testing.T) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(me.HomeDir, ".cache/quicterm/paste")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err == nil && time.Since(info.ModTime()) > 5*24*time.Hour && !strings.HasPrefix(file.Name(), "2020") {
			t.Skipf("a paste removes old ones: %s is there", filepath.Join(dir, file.Name()))
		}
	}
	return dir
}

// atDesktop opens a shell of a client at a desktop, of which wl-paste is the tool, if that is not empty: a script.
func atDesktop(h *rig.Host, proxy *netem.Proxy, wlPaste string) *rig.Terminal {
	h.T.Helper()
	if wlPaste != "" {
		h.Write("tools/wl-paste", "#!/bin/sh\n[ \"$1\" = --list-types ] && exec echo image/png\n"+wlPaste+"\n")
		os.Chmod(h.Path("tools/wl-paste"), 0o700)
	}
	addr := h.Addr
	if proxy != nil {
		addr = proxy.Addr()
	}
	cmd := h.Via(addr, "connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh")
	path := h.Path("tools") + ":" + os.Getenv("PATH")
	if wlPaste == "" {
		path = h.Path("none")
		os.Mkdir(path, 0o700)
		if ssh, err := exec.LookPath("ssh"); err != nil || os.Symlink(ssh, filepath.Join(path, "ssh")) != nil {
			h.T.Fatal("no ssh")
		}
	}
	cmd.Env = append(cmd.Env, "WAYLAND_DISPLAY=x", "PATH="+path)
	x := rig.Open(h.T, cmd)
	x.Expect(`\$ `)
	return x
}

// ~! copies the picture in the clipboard to a file that only the account can read, pastes its path without Enter, and
// removes what was pasted long ago.
func TestPastePicture(t *testing.T) {
	h := newHost(t)
	h.Start()
	dir := pastes(t)
	old := map[string]bool{ // by whether it is to stay
		fmt.Sprintf("20200101-000000-%08d.png", os.Getpid()): false,
		fmt.Sprintf("20200102-000000-%08d", os.Getpid()):     true, // not so old
		fmt.Sprintf("test-%d.png", os.Getpid()):              true, // not of qt
	}
	for name := range old {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file)
		age := 8 * 24 * time.Hour
		if strings.HasPrefix(name, "20200102") {
			age = 6 * 24 * time.Hour
		}
		if at := time.Now().Add(-age); os.Chtimes(file, at, at) != nil {
			t.Fatal("no times")
		}
	}
	x := atDesktop(h, nil, `exec cat "${0%/*}/picture"`)
	for _, size := range []int{10, 3 << 20} {
		picture := make([]byte, size)
		rand.NewChaCha8([32]byte{}).Read(picture)
		h.Write("tools/picture", string(picture))
		x.Send(`read -r line; echo "got<$line>"` + "\r")
		x.Send("~! typed\r")
		name := x.Expect(`got<(/\S+/\.cache/quicterm/paste/[0-9a-z-]+\.png) typed>`)[1]
		defer os.Remove(name)
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, picture) {
			t.Errorf("the file has %d bytes, %v", len(got), err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("the file: %v, %v", info, err)
		}
		x.Expect(`\$ `)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	for name, stays := range old {
		for until := time.Now().Add(rig.Patience); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) == stays {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%s: stays is not %v", name, stays)
			}
		}
	}
	x.Send("printf '\\033[?2004h'; cat -v\r") // a program that wants pastes to be marked
	x.Expect(`2004h`)
	x.Send("\r")
	x.Send("~!\r")
	name := x.Expect(`\^\[\[200~(/[^\s\x1b]+\.png)\^\[\[201~`)[1]
	os.Remove(name)
	x.Send("~?")
	x.Expect(`~!  copy the clipboard`)
}

// What cannot be pasted is told.
func TestPasteNothing(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := atDesktop(h, nil, "exec head -c 20971521 /dev/zero")
	x.Send("~!")
	x.Expect(`\[qt: what is in the clipboard is larger than 20 MiB: qt cp copies large files\]`)
	x.Run("echo ag''ain", "again")
	x = atDesktop(h, nil, "")
	x.Send("~!")
	x.Expect(`\[qt: reading the clipboard needs wl-paste: install the package wl-clipboard on this machine\]`)
	x = rig.Open(t, h.Via(h.Addr, "connect", nil))
	x.Expect(`[$#] $`)
	x.Send("~!")
	x.Expect(`\[qt: there is no clipboard: neither WAYLAND_DISPLAY nor DISPLAY is set where qt runs\]`)
}

// Without a network, a paste waits, and whoever leaves it types on.
func TestPasteInOutage(t *testing.T) {
	pastes(t)
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	x := atDesktop(h, p, "echo picture")
	p.Set(netem.Config{Down: true})
	x.Send("~!")
	x.Expect(`\[qt: waiting for the server: Ctrl-C leaves it\]`)
	x.Send("not typed\x03")
	x.Expect(`\[qt: nothing is pasted\]`)
	x.Send("\r~!")
	x.Expect(`\[qt: waiting for the server: Ctrl-C leaves it\]`)
	p.Set(netem.Config{})
	name := x.Expect(`(/[^\s\x1b]+\.png)`)[1]
	if got, err := os.ReadFile(name); err != nil || string(got) != "picture\n" {
		t.Errorf("%q, %v", got, err)
	}
	os.Remove(name)
	x.Send("\x15exit 3\r")
	if got := x.Exit(); got != 3 {
		t.Errorf("exit status %d", got)
	}
}
