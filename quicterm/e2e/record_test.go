//go:build linux || darwin

package e2e

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
)

// A session is recorded by one who watches: the screen, output, sizes, the exit status, and not
// what is typed.
func TestRecord(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("echo be''fore", "before")
	file := h.Path("work.cast")
	whole := startRecording(t, h, "work", file)
	x.Run("printf '\\303\\244\\n'", "ä")
	part := startRecording(t, h, "work", h.Path("part.cast"))
	if err := pty.Setsize(x.TTY, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	x.Run("until stty size | grep '30 100'; do :; done", "30 100")
	awaitContent(t, h.Path("part.cast"), "30 100")
	if err := part.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	part.wait(t, "recorded .* into .*part.cast")
	x.Send("exit 3\r")
	x.Exit()
	whole.wait(t, "recorded .* into .*work.cast")

	header, events := readRecording(t, file)
	if header.Cols != 80 || header.Rows != 24 || header.Title != "work on 127.0.0.1" {
		t.Errorf("header %+v", header)
	}
	output := text(events, asciicast.Output)
	for _, want := range []string{"before", "ä", "30 100"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in the output %q", want, output)
		}
	}
	if got := text(events, asciicast.Resize); got != "100x30" {
		t.Errorf("sizes: %q", got)
	}
	if last := events[len(events)-1]; last.Code != asciicast.Exit || last.Data != "3" {
		t.Errorf("last event: %+v", last)
	}
	if got := text(events, asciicast.Input); got != "" {
		t.Errorf("input: %q", got)
	}
	if _, events := readRecording(t, h.Path("part.cast")); !strings.Contains(text(events, asciicast.Output), "30 100") {
		t.Errorf("events %+v", events)
	}

	if out, err := h.QT("record", "work", file).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("exists already: name another file")) {
		t.Errorf("a file that exists: %v, %s", err, out)
	}
}

// A recording has all output, also if the client was stopped in a flood. If the server keeps less
// than that, the recording says where output is missing, and qt fails.
func TestRecordFlood(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		buffer   string
		complete bool
	}{{"64MiB", true}, {"512KiB", false}} {
		t.Run(test.buffer, func(t *testing.T) {
			h := newHost(t)
			h.Settings["buffer_size"] = `"` + test.buffer + `"`
			h.Start()
			x := h.Shell(h.Addr, "-s", "work")
			x.Run("cd "+h.Dir+"; mkfifo go done", "mkfifo")
			file := h.Path("work.cast")
			r := startRecording(t, h, "work", file)
			x.Send("read x < go; head -c 16000000 /dev/zero | tr '\\0' x; echo > done; exit\r~.")
			x.Exit()
			r.cmd.Process.Signal(syscall.SIGSTOP)
			if out, err := exec.Command("sh", "-c", "cd "+h.Dir+"; echo > go; cat done").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			r.cmd.Process.Signal(syscall.SIGCONT)
			err := r.cmd.Wait()
			_, events := readRecording(t, file)
			markers := text(events, asciicast.Marker)
			if test.complete {
				if n := strings.Count(text(events, asciicast.Output), "x"); err != nil || n < 16_000_000 || markers != "" {
					t.Errorf("%v; %d characters, markers %q", err, n, markers)
				}
				return
			}
			said := r.stderr.String()
			if err == nil || !strings.Contains(said, "the recording is not complete: ") || !strings.Contains(markers, "bytes of output") {
				t.Errorf("%v, %q; markers %q", err, said, markers)
			}
		})
	}
}

// The setting record records each session into a file of its own, without what is typed.
func TestRecordSetting(t *testing.T) {
	h := newHost(t)
	dir := h.Path("made/for/it")
	h.Client["record"] = `"` + dir + `"`
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("echo fi''rst", "first")
	x.Send("~.")
	x.Expect("recorded into .*-work-127.0.0.1.cast\r\n")
	x.Exit()
	x = rig.Open(t, h.QT("attach", "work"))
	x.Expect("first")
	x.Run("echo se''cond", "second")
	x.Send("exit\r")
	x.Exit()

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("recordings: %q, %v; want 2", files, err)
	}
	// Of the same second, the second one has -2 at its end.
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	for i := range files {
		info, err := os.Stat(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("mode %v of a recording", info.Mode())
		}
		_, events := readRecording(t, files[i])
		if got := text(events, asciicast.Input); got != "" {
			t.Errorf("recording %d has input: %q", i, got)
		}
		if got := text(events, asciicast.Output); !strings.Contains(got, "first") {
			t.Errorf("output of recording %d: %q", i, got)
		}
	}

	h.Client["record"] = `"/dev/null/none"`
	out, err := h.Via(h.Addr, "connect", []string{"-t"}, "true").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("/dev/null/none: not a directory: the setting record says")) {
		t.Errorf("no place for recordings: %v, %s", err, out)
	}
}

// A recording is a qt record that runs.
type recording struct {
	cmd    *exec.Cmd
	stderr *rig.Output
}

func startRecording(t *testing.T, h *rig.Host, args ...string) *recording {
	t.Helper()
	r := &recording{cmd: h.Via(h.Addr, "record", nil, args...), stderr: new(rig.Output)}
	r.cmd.Stderr = r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill() })
	r.stderr.Await(t, 0, regexp.MustCompile("recording session work on 127.0.0.1; Ctrl-C ends the recording"))
	return r
}

// awaitContent blocks until a file has some text.
func awaitContent(t *testing.T, file, want string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		content, err := os.ReadFile(file)
		if strings.Contains(string(content), want) {
			return
		}
		if time.Since(begun) > rig.Patience {
			t.Fatalf("%q is not in %s: %v", want, file, err)
		}
	}
}

func (r *recording) wait(t *testing.T, want string) {
	t.Helper()
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("qt record: %v", err)
	}
	r.stderr.Await(t, 0, regexp.MustCompile(want))
}

func readRecording(t *testing.T, name string) (asciicast.Header, []asciicast.Event) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	header, events, err := asciicast.ReadAll(file)
	if err != nil && len(events) == 0 {
		t.Fatal(err)
	}
	return header, events
}

// text returns the data of all events with a code.
func text(events []asciicast.Event, code asciicast.Code) string {
	var b strings.Builder
	for _, e := range events {
		if e.Code == code {
			b.WriteString(e.Data)
		}
	}
	return b.String()
}
