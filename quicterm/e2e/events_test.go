//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A told is an event as qt events --json prints it.
type told struct {
	Host, Session, ID, Event string
	Number, Missing, Count   uint64
	Client, Role, By, Text   string
	CWD                      string
	Cols, Rows, Port         int
	Status                   *int
	Seconds                  *float64
}

// String describes an event without what differs in each run.
func (e told) String() string {
	s := e.Session + " " + e.Event
	if e.Status != nil {
		s += fmt.Sprint(" ", *e.Status)
	}
	if e.Port > 0 {
		s += fmt.Sprint(" ", e.Port)
	}
	for _, more := range []string{e.CWD, e.Text} {
		if more != "" {
			s += " " + more
		}
	}
	return s
}

// An eventReader is a qt events that runs.
type eventReader struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan told
	file   string // that has what it has printed, and its readers before
}

// readEvents starts qt events --json, which continues the file.
func readEvents(t *testing.T, h *rig.Host, addr netip.AddrPort, file string, flags ...string) *eventReader {
	t.Helper()
	r := &eventReader{t: t, events: make(chan told, 10_000), file: file}
	r.cmd = h.Via(addr, "events", append([]string{"--json"}, flags...))
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := new(rig.Output)
	r.cmd.Stderr = errs
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.events)
		defer f.Close()
		for d := json.NewDecoder(out); ; {
			var raw json.RawMessage
			var e told
			if d.Decode(&raw) != nil || json.Unmarshal(raw, &e) != nil {
				return
			}
			f.Write(append(raw, '\n'))
			r.events <- e
		}
	}()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("qt events says: %s", errs)
		}
	})
	return r
}

// stop kills it, and returns what it has printed that next has not returned.
func (r *eventReader) stop() (rest []told) {
	r.cmd.Process.Kill()
	for e := range r.events {
		rest = append(rest, e)
	}
	r.cmd.Wait()
	return rest
}

// next returns the next event.
func (r *eventReader) next() told {
	r.t.Helper()
	select {
	case e, ok := <-r.events:
		if !ok {
			r.t.Fatal("qt events has ended")
		}
		return e
	case <-time.After(rig.Patience):
		r.t.Fatal("no further event has come")
	}
	return told{}
}

// until returns the events up to one that is described so, at its start.
func (r *eventReader) until(want string) (got []told) {
	r.t.Helper()
	for {
		e := r.next()
		got = append(got, e)
		if strings.HasPrefix(e.String(), want) {
			return got
		}
		if len(got) > 100_000 {
			r.t.Fatalf("no event %q, but %v", want, got)
		}
	}
}

// wantNumbers checks that the events of each session are numbered without a gap.
func wantNumbers(t *testing.T, events []told) {
	t.Helper()
	last := make(map[string]uint64)
	for _, e := range events {
		if before, ok := last[e.ID]; ok && e.Number != before+1 || e.Missing != 0 {
			t.Errorf("event %d comes behind event %d: %+v", e.Number, before, e)
		}
		last[e.ID] = e.Number
	}
}

// What happens to sessions is told once, in order, also to a reader that starts anew.
func TestEvents(t *testing.T) {
	h := newHost(t)
	h.Start()
	marks := `exec env HISTFILE= PS0='\[\e]133;C\a\]' ` +
		`PROMPT_COMMAND='printf "\033]133;D;%s\007" "$?"' PS1='\[\e]133;A\a\]$ \[\e]133;B\a\]' bash --norc --noprofile`
	driven(t, h, "work", marks)
	file := filepath.Join(t.TempDir(), "events")
	os.WriteFile(file, nil, 0o600)
	r := readEvents(t, h, h.Addr, file, "--since", file)
	all := r.until("work prompt")
	line := func(line, want string) {
		t.Helper()
		drive(t, h, "send", "--enter", "work", line)
		all = append(all, r.until(want)...)
	}
	line("(exit 3)", "work ended 3")
	all = append(all, r.until("work prompt")...)
	line(`printf '\a\a\033]9;it is done\007\033]0;a title\007\033]7;file://h/a/dir\007'`, "work title a title")
	line("read x", "work waits")
	all = append(all, r.stop()...)
	line = func(line, want string) { t.Helper(); drive(t, h, "send", "--enter", "work", line) }
	line("", "")
	drive(t, h, "wait", "--prompt", "work")
	line("true", "")
	driven(t, h, "other", quiet)
	r = readEvents(t, h, h.Addr, file, "--since", file)
	drive(t, h, "wait", "--prompt", "work")
	line("sleep 0.2; exit 4", "")
	all = append(all, r.until("work exited 4")...)
	wantNumbers(t, all)
	var got []string
	for _, e := range all {
		switch {
		case e.Session != "work" || strings.Contains(e.Event, "tached"):
		case e.Event == "title" || e.Event == "cwd": // may come before the end of the command
		default:
			got = append(got, strings.TrimPrefix(e.String(), "work "))
		}
	}
	if !slices.ContainsFunc(all, func(e told) bool { return e.CWD == "/a/dir" }) {
		t.Error("the directory is not told")
	}
	const want = "prompt, began, ended 3, prompt, began, bell, notification it is done, ended 0, prompt, began, waits, ended 0, " +
		"prompt, began, ended 0, prompt, began, exited 4"
	if told := strings.Join(got, ", "); told != want {
		t.Errorf("told:\n%s\nwant:\n%s", told, want)
	}
}

// Sessions that are started are followed at once, also one without a terminal, of which only the end is told; and one
// whose holder was killed is lost. An outage loses nothing.
func TestEventsOfOthers(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	driven(t, h, "first", quiet)
	r := readEvents(t, h, p.Addr(), filepath.Join(t.TempDir(), "events"))
	h.Log.Await(t, 0, regexp.MustCompile("client attached.*role=watch"))
	begun := time.Now()
	driven(t, h, "second", quiet)
	r.until("second prompt")
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("a new session was followed after %v", took)
	}
	pipe := h.Via(h.Addr, "connect", []string{"-s", "pipe"}, "printf '\\a'; until test -e "+h.Path("go")+"; do sleep 0.1; done; exit 7")
	if err := pipe.Start(); err != nil {
		t.Fatal(err)
	}
	h.Log.Await(t, 0, regexp.MustCompile("client attached.*session=pipe.*role=watch"))
	h.Write("go", "")
	pipe.Wait()
	var all []told
	for {
		e := r.next()
		all = append(all, e)
		if e.Event == "exited" {
			break
		}
	}
	if e := all[len(all)-1]; e.String() != e.Session+" exited 7" || e.Number != 1 {
		t.Errorf("of a pipe: %+v", e)
	}

	p.Set(netem.Config{Down: true})
	for i := range 5 {
		drive(t, h, "send", "--enter", "second", fmt.Sprintf("printf '\\033]9;%d\\007'; sleep 0.1", i))
		drive(t, h, "wait", "--prompt", "second")
	}
	p.Set(netem.Config{})
	n := 0
	for n < 5 {
		e := r.next()
		if all = append(all, e); e.Event == "notification" {
			if e.Text != fmt.Sprint(n) {
				t.Errorf("notification %q, want %d", e.Text, n)
			}
			n++
		}
	}
	wantNumbers(t, all)

	for _, pid := range h.Children() {
		if pid != h.Network() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	all = append(r.until("first lost"), all...)
	if !slices.ContainsFunc(all, func(e told) bool { return e.String() == "second lost" }) {
		r.until("second lost")
	}
}

// A command gets each event on its standard input, one after the other, and nothing of it elsewhere.
func TestEventsExec(t *testing.T) {
	h := newHost(t)
	h.Start()
	driven(t, h, "work", "printf '\\033]9;$(touch evil)`touch evil`\\007\\a'; exit 3")
	got := h.Path("got")
	cmd := h.Via(h.Addr, "events", []string{"--since", "/dev/null", "--exec",
		fmt.Sprintf("{ cat; echo $# $@; env | grep -c evil; } >>%s; exit 1", got)})
	errs := new(rig.Output)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	errs.Await(t, 0, regexp.MustCompile("(?s)(exit status 1.*){3}"))
	last := regexp.MustCompile(`"exited".*\n0\n0\n$`)
	for deadline := time.Now().Add(rig.Patience); !last.MatchString(h.Read("got")); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no end: %s", h.Read("got"))
		}
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("qt events ends with %v, and says: %s", err, errs)
	}
	text := h.Read("got")
	if !strings.Contains(text, "$(touch evil)`touch evil`") || strings.Count(text, "\n0\n0\n") != strings.Count(text, `{"host"`) {
		t.Errorf("the commands got\n%s", text)
	}
	for _, dir := range []string{h.Dir, "."} {
		if _, err := os.Stat(filepath.Join(dir, "evil")); err == nil {
			t.Error("text of an event was run")
		}
	}
}
