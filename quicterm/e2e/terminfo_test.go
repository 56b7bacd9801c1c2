//go:build linux || darwin

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/machine/terminfo"
)

// madeUp is the entry of a terminal that no server knows, which has a program run by tset.
func madeUp() *terminfo.Entry {
	e := &terminfo.Entry{Names: []string{"quicterm-test", "a terminal of tests"}, Labels: []string{"XT", "Smulx"}}
	for range 139 {
		e.Standard.Strings = append(e.Standard.Strings, terminfo.String{State: terminfo.Absent})
	}
	e.Standard.Strings[1] = terminfo.String{Text: "\a"} // bell
	e.Standard.Strings[138] = terminfo.String{Text: "/bin/sh"}
	e.Extended.Bools = []int8{1}
	e.Extended.Strings = []terminfo.String{{Text: "\x1b[4:%p1%dm"}}
	return e
}

// onMadeUp returns a client on that terminal.
func onMadeUp(t *testing.T, h *rig.Host, flags []string, args ...string) *exec.Cmd {
	b, err := madeUp().Encode()
	if err != nil {
		t.Fatal(err)
	}
	h.Write("terminfo/q/quicterm-test", string(b))
	cmd := h.Via(h.Addr, "connect", flags, args...)
	cmd.Env = append(cmd.Env, "TERM=quicterm-test", "TERMINFO="+h.Path("terminfo"))
	return cmd
}

// folders returns where the daemon's sessions have entries of terminals.
func folders(t *testing.T, h *rig.Host) []string {
	found, err := filepath.Glob(h.Path("run/*/*.terminfo"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A session knows the client's terminal, also if the server does not.
func TestTerminfoTravels(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := rig.Open(t, onMadeUp(t, h, []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	x.Send(`echo "di""rs=$TERMINFO_DIRS=$TERM"` + "\r")
	dir := x.Expect(`dirs=(/[^:]*):=quicterm-test\r`)[1]
	x.Expect(`\$ `)
	want := madeUp()
	want.Detach()
	for _, file := range terminfo.Paths("quicterm-test") {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := terminfo.Decode(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the session has %+v, %v\nwant %+v", got, err, want)
		}
	}
	if _, err := exec.LookPath("infocmp"); err == nil {
		x.Run(`infocmp -x -1`, `bel=\^G,[\s\S]*Smulx=`)
	}
	x.Send("exit\r")
	x.Exit()
	for end := time.Now().Add(rig.Patience); len(folders(t, h)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the session has ended, and there is %v", folders(t, h))
		}
	}
}

// The server makes nothing of an entry for a session that does not need it or must not have it.
func TestTerminfoStays(t *testing.T) {
	for name, c := range map[string]struct {
		options, flag string
		env           []string
		want          string
	}{
		"a key with a command":   {`command="echo forced $TERM; %s" `, "-t", nil, "forced quicterm-test"},
		"no terminal":            {"", "-T", nil, "TERM=quicterm-test"},
		"another terminal":       {"", "-t", []string{"TERM=quicterm-other"}, "TERM=quicterm-other"},
		"the program finds it":   {"", "-t", nil, "TERMINFO=/"},
		"no entry of the client": {"", "-t", []string{"TERMINFO="}, "TERM=quicterm-test"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			if strings.HasPrefix(c.want, "TERMINFO") {
				h.Settings["accept_env"], h.Client["send_env"] = `["TERM*"]`, `["TERM*"]`
			}
			look := "env; ls " + h.Path("run") + "/*"
			h.Write("authorized_keys", strings.Replace(c.options, "%s", look, 1)+string(ssh.MarshalAuthorizedKey(h.Key)))
			h.Start()
			cmd := onMadeUp(t, h, []string{c.flag}, look)
			cmd.Env = append(cmd.Env, c.env...)
			if strings.Contains(name, "another") { // the file has another entry than its name says
				h.Write("terminfo/q/quicterm-other", h.Read("terminfo/q/quicterm-test"))
			}
			x := rig.Open(t, cmd)
			if status := x.Exit(); status != 0 {
				t.Fatalf("exit status %d: %s", status, x.Out)
			}
			<-x.Closed() // then Out has all
			if out := x.Out.String(); !strings.Contains(out, c.want) || strings.Contains(out, "TERMINFO_DIRS") ||
				!strings.Contains(out, ".sock") || strings.Contains(out, ".sock.terminfo") {
				t.Errorf("the session had:\n%s\nwant %q, and neither TERMINFO_DIRS nor a folder", out, c.want)
			}
			if strings.Contains(name, "another") {
				h.Log.Await(t, 0, regexp.MustCompile("terminfo entry is not that of"))
			}
		})
	}
}
