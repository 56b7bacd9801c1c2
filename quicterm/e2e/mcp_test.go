//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/quicterm/quicterm/bench/rig"
)

// An mcpClient is a client of qt mcp.
type mcpClient struct {
	t *testing.T
	*mcp.ClientSession
}

// newMCPClient starts qt mcp for a host, and a client of it. The flags end with --host, whose value is the host.
func newMCPClient(t *testing.T, h *rig.Host, flags ...string) *mcpClient {
	t.Helper()
	cmd := h.Via(h.Addr, "mcp", append(flags, "--host"))
	errs := new(rig.Output)
	cmd.Stderr = errs
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Logf("qt mcp says:\n%s", errs)
		}
	})
	return &mcpClient{t, s}
}

// called is all that the results of tools have.
type called struct {
	Sessions            []struct{ Name, State, Runs, Waits string }
	Name, Screen, Title string
	Cols, Rows          int
	Status              *int
	Running             bool
	Output              string
	Omitted             int
	From, Next, Lost    uint64
	Text                string
	Condition, Match    string
	Runs, Waits, CWD    string
	CursorColumn        int `json:"cursor_column"`
	CursorRow           int `json:"cursor_row"`
	Notices             []string
}

// try calls a tool. It returns the text of an error, if the result is one.
func (a *mcpClient) try(ctx context.Context, tool string, arguments map[string]any) (c called, failed string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	text := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		return c, text
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		a.t.Fatalf("%s: %v: %s", tool, err, text)
	}
	return c, ""
}

func (a *mcpClient) call(tool string, arguments map[string]any) called {
	a.t.Helper()
	c, failed := a.try(a.t.Context(), tool, arguments)
	if failed != "" {
		a.t.Fatalf("%s %v: %s", tool, arguments, failed)
	}
	return c
}

type arguments = map[string]any

// An agent uses every tool on a session, which a person can watch.
func TestMCP(t *testing.T) {
	h := newHost(t)
	h.Start()
	a := newMCPClient(t, h)
	tools, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "kill list peek run send start tail wait" {
		t.Errorf("tools: %s", got)
	}

	started := a.call("start", arguments{"name": "work", "command": quiet, "cols": 60, "rows": 10})
	if started.Name != "work" {
		t.Errorf("started %+v", started)
	}
	if l := a.call("list", nil); len(l.Sessions) != 1 || l.Sessions[0].Name != "work" || l.Sessions[0].State != "detached" {
		t.Errorf("list: %+v", l)
	}
	if m := a.call("wait", arguments{"session": "work", "prompt": true}); m.Condition != "prompt" {
		t.Errorf("wait: %+v", m)
	}
	r := a.call("run", arguments{"session": "work", "line": "seq 3; (exit 4)"})
	if r.Output != "1\n2\n3\n" || r.Status == nil || *r.Status != 4 {
		t.Errorf("run: %+v", r)
	}
	r = a.call("run", arguments{"session": "work", "line": "seq 100000 100999", "max_bytes": 14})
	if r.Output != "100998\n100999\n" || r.Omitted != 7*998 {
		t.Errorf("run with max_bytes: %+v", r)
	}
	r = a.call("run", arguments{"session": "work", "line": "echo begun; sleep 1000", "timeout_seconds": 0.5})
	if !r.Running || r.Output != "begun\n" || r.Status != nil {
		t.Errorf("run that takes too long: %+v", r)
	}
	_, failed := a.try(t.Context(), "run", arguments{"session": "work", "line": "x"})
	if !strings.Contains(failed, "no shell waits") {
		t.Errorf("run while another runs: %q", failed)
	}
	a.call("send", arguments{"session": "work", "keys": []string{"C-c"}})
	a.call("wait", arguments{"session": "work", "prompt": true})
	a.call("send", arguments{"session": "work", "text": "clear; printf 'a needle\\nb'; read x", "enter": true})
	if m := a.call("wait", arguments{"session": "work", "text": "^a ne+dle"}); m.Match != "a needle" {
		t.Errorf("wait: %+v", m)
	}
	a.call("wait", arguments{"session": "work", "reading": true})
	v := a.call("peek", arguments{"session": "work"})
	if v.Screen != "a needle\nb\n" || v.Cols != 60 || v.Rows != 10 || v.CursorColumn != 1 || v.CursorRow != 1 ||
		v.Runs != "bash" || v.Waits != "input" || v.CWD == "" {
		t.Errorf("peek: %+v", v)
	}

	var all strings.Builder
	for next := uint64(0); ; {
		c := a.call("tail", arguments{"session": "work", "since": next, "max_bytes": 1000})
		if c.Lost != 0 || len(c.Text) > 1000 || c.Next < next {
			t.Fatalf("tail from %d: %+v", next, c)
		}
		if c.Text == "" {
			break
		}
		all.WriteString(c.Text)
		next = c.Next
	}
	for i := range 999 { // the first line is behind a mark
		if line := fmt.Sprintf("\n%d\r", 100001+i); strings.Count(all.String(), line) != 1 {
			t.Fatalf("tail has %q %d times", line, strings.Count(all.String(), line))
		}
	}

	person := rig.Open(t, h.Via(h.Addr, "attach", []string{"--share", "--size", "own"}, "work"))
	person.Expect("a needle")
	var seen string
	for deadline := time.Now().Add(rig.Patience); !strings.Contains(seen, "has joined (share)") ||
		!strings.Contains(seen, "has taken the size: 80x24"); {
		seen += strings.Join(a.call("peek", arguments{"session": "work"}).Notices, ";")
		if time.Now().After(deadline) {
			t.Fatalf("notices when a person has come: %q", seen)
		}
	}
	person = rig.Open(t, h.Via(h.Addr, "attach", nil, "work"))
	person.Expect("a needle")
	failed = "" // until qt mcp has heard of it
	for deadline := time.Now().Add(rig.Patience); failed == "" && time.Now().Before(deadline); {
		_, failed = a.try(t.Context(), "peek", arguments{"session": "work"})
	}
	if !strings.Contains(failed, "taken over by") {
		t.Errorf("after a person took the session over: %q", failed)
	}
	if v := a.call("peek", arguments{"session": "work"}); v.Cols != 80 {
		t.Errorf("beside that person: %+v", v)
	}
	a.call("kill", arguments{"session": "work"})
	if _, failed := a.try(t.Context(), "peek", arguments{"session": "work"}); failed == "" {
		t.Error("peek at a session that was ended")
	}
	if l := a.call("list", nil); len(l.Sessions) != 0 {
		t.Errorf("list at the end: %+v", l)
	}
}

// The end of a call ends what it waits for: another call that types has its turn.
func TestMCPCancelled(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "work", quiet)
	a := newMCPClient(t, h)
	a.call("wait", arguments{"session": "work", "prompt": true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := a.CallTool(ctx, &mcp.CallToolParams{
			Name: "run", Arguments: arguments{"session": "work", "line": "echo be''gun; sleep 1000", "timeout_seconds": 1000},
		})
		ended <- err
	}()
	// A Ctrl-C that comes while bash starts sleep leaves a second bash in the foreground, or is missed.
	for began := time.Now(); a.call("peek", arguments{"session": "work"}).Runs != "sleep"; {
		if time.Since(began) > rig.Patience {
			t.Fatal("sleep is not in the foreground")
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call has ended without an error")
	}
	a.call("send", arguments{"session": "work", "keys": []string{"C-c"}})
	a.call("wait", arguments{"session": "work", "prompt": true})
	if r := a.call("run", arguments{"session": "work", "line": "echo on"}); r.Output != "on\n" {
		t.Errorf("run: %+v", r)
	}
}

// With --read-only, no tool types or changes sessions.
func TestMCPReadOnly(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "work", "echo shown; read x; echo got $x")
	a := newMCPClient(t, h, "--read-only")
	tools, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if !slices.Contains([]string{"list", "peek", "wait", "tail"}, tool.Name) || !tool.Annotations.ReadOnlyHint {
			t.Errorf("there is a tool %s", tool.Name)
		}
	}
	for _, name := range []string{"start", "run", "send", "kill"} {
		call := &mcp.CallToolParams{Name: name, Arguments: arguments{"session": "work"}}
		if _, err := a.CallTool(t.Context(), call); err == nil {
			t.Errorf("%s can be called", name)
		}
	}
	a.call("wait", arguments{"session": "work", "text": "shown"})
	if c := a.call("tail", arguments{"session": "work"}); !strings.Contains(c.Text, "shown") {
		t.Errorf("tail: %+v", c)
	}
	_, failed := a.try(t.Context(), "wait", arguments{"session": "work", "exit": true, "timeout_seconds": 0.2})
	if !strings.Contains(failed, "in time") {
		t.Errorf("wait in vain: %q", failed)
	}
}

// An agent reaches the hosts that the user has named, and no other by any spelling; nobody is asked for what is missing.
func TestMCPHosts(t *testing.T) {
	h := newHost(t)
	h.Start()
	a := newMCPClient(t, h, "--host", ".")
	for _, host := range []string{
		"", "localhost", "127.0.0.2", "root@127.0.0.1", "127.0.0.1 ", "-oProxyCommand=touch " + h.Path("owned"),
	} {
		for _, tool := range []string{"list", "peek", "tail", "kill", "start"} {
			in := arguments{"host": host}
			if tool != "list" && tool != "start" {
				in["session"] = "work"
			}
			_, failed := a.try(t.Context(), tool, in)
			if !strings.Contains(failed, `is not a host of this server, which has ["." "127.0.0.1"]`) {
				t.Errorf("%s at %q: %q", tool, host, failed)
			}
		}
	}
	out, err := h.Named("-oProxyCommand=x", h.Path("none"), "mcp", []string{"--host"}).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not a host") {
		t.Errorf("%v, %q", err, out)
	}

	asked := func(missing, want string) {
		t.Helper()
		if _, failed := newMCPClient(t, h).try(t.Context(), "list", nil); !strings.Contains(failed, want) {
			t.Errorf("%s: %q", missing, failed)
		}
	}
	known := h.Read("known_hosts")
	h.Write("known_hosts", "")
	asked("a server that is not known", "is not known")
	h.Write("known_hosts", known)
	encrypt := exec.Command("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", h.Path("id"))
	if out, err := encrypt.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asked("a key that needs a passphrase", "a passphrase is needed, and the user is not to be asked")
}
