package offers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// No server chooses a path, a hidden file or more than a name has room for.
func TestClean(t *testing.T) {
	for name, want := range map[string]string{
		"a.pdf": "a.pdf", "../../a": "a", "/etc/passwd": "passwd", `c:\x\y`: "y", ".bashrc": "bashrc", "..": "file", "": "file",
		"a/":      "file",
		"...a. .": "a", "a\x00b\x1b[1mc\u202e": "a_b_[1mc_", `a<b>:|*`: "a_b____", "\xff": "_", "a\nb": "a b",
	} {
		if got := clean(name); got != want {
			t.Errorf("clean(%q) = %q, want %q", name, got, want)
		}
	}
	long := clean(strings.Repeat("\u00e4", 300))
	if len(long+partSuffix) > 255-len("-1000") || !utf8.ValidString(long) {
		t.Errorf("a long name has %d bytes", len(long))
	}
}

// A new file takes no other one's place, also not a link's.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.Symlink("elsewhere", filepath.Join(dir, "a.tar.gz")); err != nil {
		t.Skip(err)
	}
	for _, want := range []string{"a.tar-1.gz", "a.tar-2.gz"} {
		file, err := create(root, "a.tar.gz")
		if err != nil || filepath.Base(file.Name()) != want {
			t.Fatalf("%v, %v, want %s", file, err, want)
		}
		io.WriteString(file, want)
		file.Close()
		if got, err := os.ReadFile(filepath.Join(dir, want)); string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("a file was made through a link")
	}
}

// A file gets its name when it is whole, and replaces none.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, want := range []string{"a.pdf", "a-1.pdf"} {
		part, err := create(root, "a.pdf"+partSuffix)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, want)
		if _, err := os.Lstat(filepath.Join(dir, want)); err == nil {
			t.Errorf("%s is there before it is whole", want)
		}
		if name, err := keep(root, part, "a.pdf"); name != want || err != nil {
			t.Errorf("%q, %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"a.pdf", "a-1.pdf"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != name {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("there are %v", all)
	}
}

// An answer is for the file that was shown, whatever was offered since, and each file is asked about once.
func TestAnswerIsForShown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is fetched
	for answer, want := range map[string]string{"y": "saving shown", "n": "refused shown"} {
		f := &Offers{Client: client.New(client.Config{}), Say: func(string) {}}
		add := func(id int, name string) {
			f.Add(wire.OfferFile{ID: uint64(id), Name: name})
			untilTold(f)
		}
		add(1, "shown")
		f.Menu(ctx, "")
		for id := range maxPending {
			add(100+id, "flood")
		}
		add(1, "another with its ID")
		text, more := f.Menu(ctx, answer)
		if !strings.HasPrefix(text, want+"\n") || !strings.Contains(text, "offers flood") || !more {
			t.Errorf("%s: %q, %v", answer, text, more)
		}
		add(1, "shown") // is on its way when the answer reaches the server
		for range maxPending - 1 {
			if text, _ := f.Menu(ctx, answer); strings.Contains(text, "shown") || strings.Contains(text, "another") {
				t.Errorf("%s: %q", answer, text)
			}
		}
		if text, more := f.Menu(ctx, answer); more {
			t.Errorf("%s: at the end it asks %q", answer, text)
		}
		for id := range 2 * maxAnswered {
			add(id, "flood")
			f.Menu(ctx, "")
			f.Menu(ctx, answer)
		}
		if len(f.answered) != maxAnswered {
			t.Errorf("%d are kept", len(f.answered))
		}
	}
}

// untilTold waits until the terminal has told all.
func untilTold(f *Offers) {
	for told := false; !told; runtime.Gosched() {
		f.mu.Lock()
		told = len(f.untold) == 0
		f.mu.Unlock()
	}
}

// While the terminal is stopped, no more wait for it than are kept, and those beyond that may be offered again.
func TestStoppedTerminal(t *testing.T) {
	stopped := make(chan bool)
	told := 0
	f := &Offers{Say: func(string) {
		<-stopped
		told++
	}}
	for id := range 10 * maxUntold {
		f.Add(wire.OfferFile{ID: uint64(id)})
	}
	close(stopped)
	untilTold(f)
	if told != maxUntold {
		t.Errorf("%d were told, want %d", told, maxUntold)
	}
	f.Add(wire.OfferFile{ID: 10*maxUntold - 1})
	untilTold(f)
	if told != maxUntold+1 {
		t.Error("one that was not told is not taken again")
	}
}

// The same offer is told once, and of very many the last are kept.
func TestBounded(t *testing.T) {
	said := make(chan string, 100)
	f := &Offers{Host: "box", Say: func(text string) { said <- text }, Key: "~<"}
	for id := range 2 * maxPending {
		for range 3 {
			f.Add(wire.OfferFile{ID: uint64(id), Size: 1500, Name: fmt.Sprintf("f%d", id)})
		}
		if got, want := <-said, fmt.Sprintf("box offers f%d (1.5 kB): ~< saves it", id); got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	text, more := f.Menu(context.Background(), "x")
	if !more || len(f.pending) != maxPending || !strings.HasPrefix(text, "box offers f16 (1.5 kB): save it to ") {
		t.Errorf("%q, %v, %d are pending", text, more, len(f.pending))
	}
}

// A question waits for the answer to what was shown, for a time or until it is withdrawn, and few wait at once.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 100)
		f := &Offers{Host: "box", Say: func(text string) { said <- text }, Key: "~<"}
		ask := func(ctx context.Context, what string) <-chan bool {
			answer := make(chan bool, 1)
			go func() { answer <- f.Ask(ctx, what) }()
			synctest.Wait()
			return answer
		}
		wantSaid := func(want string) {
			t.Helper()
			synctest.Wait()
			select {
			case got := <-said:
				if got != want {
					t.Errorf("said %q, want %q", got, want)
				}
			default:
				t.Errorf("nothing is said, want %q", want)
			}
		}
		menu := func(line, want string) (number string) {
			t.Helper()
			text, more := f.Menu(t.Context(), line)
			shown := regexp.MustCompile("^" + want + `: (\d{3}) allows it, n refuses it, Enter leaves$`).FindStringSubmatch(text)
			if shown == nil || !more {
				t.Fatalf("%q: %q, %v; want %q", line, text, more, want)
			}
			return shown[1]
		}
		f.Add(wire.OfferFile{ID: 1, Name: "file"})
		wantSaid("box offers file (0 B): ~< saves it")
		for _, yes := range []bool{true, false} {
			first := ask(t.Context(), "sign")
			wantSaid("box asks to sign: ~< answers")
			menu("", "box asks to sign")
			answer, note := menu("y", "box asks to sign"), "allowed"
			if len(first) > 0 {
				t.Fatal("a y, which may have been typed before it was shown, answers it")
			}
			if !yes {
				answer, note = "n", "refused"
			}
			second := ask(t.Context(), "log in")
			wantSaid("box asks to log in: ~< answers")
			number := menu(answer, note+": sign\nbox asks to log in")
			if got := <-first; got != yes {
				t.Errorf("%s: %v", answer, got)
			}
			synctest.Wait()
			if len(second) > 0 {
				t.Error("the next one was answered too")
			}
			begun := time.Now()
			if <-second || time.Since(begun) != askTime {
				t.Errorf("without an answer it waits for %v", time.Since(begun))
			}
			wantSaid("refused, for want of an answer: log in")
			if text, _ := f.Menu(t.Context(), number); !strings.HasPrefix(text, "too late: log in\nbox offers file") {
				t.Errorf("after its end: %q", text)
			}
			f.Menu(t.Context(), "")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting []<-chan bool
		for range maxAsked {
			waiting = append(waiting, ask(ctx, "sign"))
			wantSaid("box asks to sign: ~< answers")
		}
		if more := ask(ctx, "sign"); <-more {
			t.Error("one more is allowed")
		}
		cancel()
		for _, answer := range waiting {
			if <-answer {
				t.Error("one that was withdrawn is allowed")
			}
		}
		if len(said) > 0 || len(f.asked) > 0 {
			t.Errorf("%d wait; said %q", len(f.asked), <-said)
		}
	})
}
