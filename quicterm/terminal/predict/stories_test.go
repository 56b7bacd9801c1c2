package predict_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const ms = time.Millisecond

func shellWorld(t *testing.T, rtt time.Duration) *world {
	s := &shell{prompt: "~ $ "}
	return newWorld(t, rtt, s, s.hello())
}

func TestFirstLetterBehindAPromptShowsAtOnce(t *testing.T) {
	w := shellWorld(t, 300*ms)
	w.press("l")
	w.want("the first letter of all")
	w.press("s")
	w.want("the second")
	w.press("\r")
	w.pass(400 * ms)
	w.press("p")
	w.want("the first letter behind the next prompt")
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

func TestTypedAheadOfThePrompt(t *testing.T) {
	w := shellWorld(t, 100*ms)
	w.types("ls\rpwd", 40*ms)
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

func TestLineEditing(t *testing.T) {
	w := shellWorld(t, 200*ms)
	for _, key := range []string{
		"e", "c", "h", "o", " ", "a", "b", "\x7f", "\x7f", "x", "\x1b[D", "\x1b[D", "y", "z", "\x7f", "\x1b[C", "1", "\x01", "#",
	} {
		w.press(key)
		w.want("after " + key)
		w.pass(30 * ms)
	}
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

func TestNothingIsErasedInFrontOfTheLine(t *testing.T) {
	w := shellWorld(t, 200*ms)
	w.types("a\x7f\x7f\x7f", 10*ms)
	if !strings.Contains(w.view(), "~ $ ") {
		t.Error("the prompt is erased")
	}
	w.settle()
}

// A backspace that has no effect does not make the next letter wait.
func TestBackspaceBehindThePrompt(t *testing.T) {
	w := shellWorld(t, 100*ms)
	w.types("ls\r", 200*ms)
	w.pass(time.Second)
	w.types("\x7f\x7f", 50*ms)
	w.pass(5 * time.Second)
	w.press("p")
	w.want("the first letter")
	w.settle()
}

func TestKernelEdits(t *testing.T) {
	w := shellWorld(t, 200*ms)
	w.types("cat\r", 20*ms)
	w.pass(time.Second)
	w.types("first\r", 300*ms) // proves the echo
	w.pass(time.Second)
	for _, key := range []string{"o", "n", "e", "\x7f", "\x7f", "x", "\x15", "t", "w", "o"} {
		w.press(key)
		w.want("after " + key)
		w.pass(20 * ms)
	}
	w.press("\r")
	w.pass(time.Second)
	w.press("z")
	w.want("in the next line")
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

// TestSecretsAreNotDrawn types passwords in a shell, and in a shell inside of which no hint tells.
// SECRETS=100000 types as many characters.
func TestSecretsAreNotDrawn(t *testing.T) {
	typed, often := 0, 2
	if n, err := strconv.Atoi(os.Getenv("SECRETS")); err == nil {
		often = n/960 + 1
	}
	for _, inside := range []bool{false, true} {
		for _, hints := range []bool{true, false} {
			for _, rtt := range []time.Duration{10 * ms, 100 * ms, 300 * ms, 600 * ms} {
				var far program
				own := shell{prompt: "~ $ "}
				if far = &own; inside {
					far = &remote{own}
				}
				w := newWorld(t, rtt, far, own.hello())
				w.hints = hints
				for n := range often {
					w.types("ls\rsudo\r", 20*ms)
					w.pass(2*rtt + time.Duration(n%7)*50*ms)
					before := w.drawn
					for range 20 {
						w.types("QWZ\x7f", time.Duration(5+n%11*20)*ms)
						typed += 3
					}
					w.types("QW\r", 10*ms)
					w.pass(2*rtt + 100*ms)
					if strings.ContainsAny(w.drawn[len(before):], "QWZ") {
						t.Fatalf("round trip %v, hints %v, inside %v: drawn %q", rtt, hints, inside, w.drawn[len(before):])
					}
				}
				w.settle()
			}
		}
	}
	t.Logf("%d characters of secrets", typed)
}

// What is typed faster than the answers come is evidence too, when it is seen.
func TestEchoOfHeldKeys(t *testing.T) {
	w := shellWorld(t, 100*ms)
	w.types("vim\r", 20*ms)
	w.pass(time.Second)
	w.types("jjxjx", 50*ms)
	w.pass(time.Second)
	w.types("ihe", 60*ms)
	w.pass(20 * ms)
	w.press("l")
	if !strings.Contains(w.view(), "\nhel") {
		t.Errorf("the person sees\n%s", w.view())
	}
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

func TestApplicationIsLearned(t *testing.T) {
	w := shellWorld(t, 100*ms)
	w.types("vim\r", 20*ms)
	w.pass(time.Second)
	w.types("jjxjx", 50*ms)
	w.pass(time.Second)
	w.types("ihe", 50*ms)
	w.pass(300 * ms)
	w.types("l", 300*ms)
	w.press("l")
	w.press("o")
	if !strings.Contains(w.view(), "\nhello ") {
		t.Errorf("in insert mode the person sees\n%s", w.view())
	}
	w.press("\x7f")
	if !strings.Contains(w.view(), "\nhell ") {
		t.Errorf("after backspace the person sees\n%s", w.view())
	}
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

// What is typed behind the key that ends a program waits for the shell's prompt, and no longer.
func TestPromptBehindAProgramThatFillsTheScreen(t *testing.T) {
	w := shellWorld(t, 300*ms)
	w.types("ls\rvim\r", 50*ms)
	w.pass(time.Second)
	w.types("jj", 200*ms)
	w.pass(time.Second)
	w.types("Zca", 100*ms)
	w.pass(105 * ms)
	w.press("l")
	w.want("as soon as the prompt is there")
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

// A slash that takes the place of a pager's prompt leaves the cursor where it was.
func TestSearchInAPager(t *testing.T) {
	w := shellWorld(t, 100*ms)
	w.types("less\r", 20*ms)
	w.pass(time.Second)
	w.types("jj", 200*ms)
	w.press("/")
	w.pass(105 * ms)
	w.press("w")
	w.want("the first letter")
	w.press("o")
	w.want("the second")
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}

func TestFastPathShowsNothing(t *testing.T) {
	w := shellWorld(t, 10*ms)
	w.press("a")
	if len(w.overlay.Cells) != 0 {
		t.Error("a cell is drawn although the round trip is short")
	}
	w.settle()
	w.rtt = 2 * time.Second // a hole in the network
	w.press("b")
	w.pass(260 * ms)
	w.want("when the answer is late")
	w.pass(5 * time.Second)
	w.settle()
}

// TestRTTThatChanges types while a fast path turns slow and fast again. What is drawn stays until its answer,
// and keys are drawn at once as soon as one was late.
func TestRTTThatChanges(t *testing.T) {
	for _, steps := range [][]time.Duration{
		{20 * ms, 300 * ms, 20 * ms}, {5 * ms, 600 * ms, 5 * ms}, {20 * ms, 60 * ms, 120 * ms, 300 * ms, 120 * ms, 20 * ms},
		{25 * ms, 35 * ms, 25 * ms}, {10 * ms, 260 * ms, 10 * ms, 260 * ms, 10 * ms},
	} {
		for _, gap := range []time.Duration{30 * ms, 100 * ms, 190 * ms} {
			w := shellWorld(t, steps[0])
			w.measured = steps[0]
			for _, rtt := range steps {
				w.rtt = rtt
				before := w.prompt
				w.types("abcdef", gap)
				if rtt >= 300*ms && gap == 100*ms && w.prompt-before < 3 {
					t.Errorf("%v, a key each %v: %d of 6 keys are drawn at once after the path turned slow", steps, gap, w.prompt-before)
				}
			}
			w.settle()
			if w.vanished != 0 || w.wrong != 0 {
				t.Errorf("%v, a key each %v: %d letters vanished, %d wrong cells", steps, gap, w.vanished, w.wrong)
			}
			w.rtt, w.measured = 25*ms, 35*ms
			w.types("t", 100*ms) // is felt, and then nearly
			w.measured = 25 * ms
			w.types("u", 100*ms)
			w.press("v")
			w.want("neither felt nor fast")
			w.settle()
			w.rtt, w.measured = 10*ms, 10*ms
			w.types("xy", 100*ms) // is fast again
			w.drawn = ""
			w.types("z", 100*ms)
			if w.drawn != "" {
				t.Errorf("%v, a key each %v: %q is drawn on a path that is fast again", steps, gap, w.drawn)
			}
			w.settle()
		}
	}
}

// TestOutageBeforeAnythingIsLearned types into an outage that begins just after an attach, and again behind the
// next prompt.
func TestOutageBeforeAnythingIsLearned(t *testing.T) {
	own := &shell{prompt: "~ $ "}
	for name, far := range map[string]program{own.hello(): own, "$ ": new(dash)} {
		w := newWorld(t, 10*ms, far, "")
		w.ideal.Write([]byte(name))
		w.screen.Write([]byte(name)) // a snapshot
		w.p.Reset(w.now)
		flags, context := far.terminal()
		w.p.Hinted(w.now, w.screen, wire.Hint{Terminal: flags, Context: context})
		for _, why := range []string{"after the attach", "after Enter"} {
			w.rtt = 10 * time.Second
			w.types("ls", 50*ms)
			w.pass(300 * ms)
			w.want(why)
			w.pass(10 * time.Second)
			w.rtt = 10 * ms
			w.types("\r", time.Second)
		}
		w.settle()
		if w.wrong != 0 {
			t.Errorf("%q: %d wrong cells", name, w.wrong)
		}
	}
}

func TestOfflineKeepsWhatIsTyped(t *testing.T) {
	w := shellWorld(t, 100*ms)
	w.rtt = time.Hour
	w.types("ls -l", 100*ms)
	w.p.SetOffline(true)
	w.pass(time.Minute)
	w.want("after a minute without the server")
	for _, c := range w.overlay.Cells {
		if c.Text != " " && c.Style.Underline == 0 {
			t.Errorf("%q is not underlined", c.Text)
		}
	}
}

// TestRowsThatEndBeforeTheScreenDoes types where the cursor goes to the next row by itself. One key a row
// shows that the program goes on to echo; the others are drawn at once.
func TestRowsThatEndBeforeTheScreenDoes(t *testing.T) {
	for _, gap := range []time.Duration{40 * ms, 100 * ms, 200 * ms} {
		f := new(form)
		w := newWorld(t, 100*ms, f, f.hello())
		late := 0
		for n := range 5 * formWidth {
			glyph := string(rune('a' + n%26))
			x, y := f.place()
			w.press(glyph)
			if !strings.HasPrefix(string([]rune(strings.Split(w.view(), "\n")[y+1])[x:]), glyph) {
				late++
			}
			w.pass(gap)
		}
		// In each row: the first key, and those that were typed before its answer.
		if most := 5 * (1 + int(100*ms/gap)); late > most+2 {
			t.Errorf("a key each %v: %d are drawn late, want at most %d", gap, late, most)
		}
		w.settle()
	}
}

func TestNeverShowsNothing(t *testing.T) {
	w := shellWorld(t, 300*ms)
	w.p.SetMode(predict.Never)
	w.types("ls\rls\r", 50*ms)
	w.settle()
	if w.drawn != "" {
		t.Errorf("drawn %q", w.drawn)
	}
}

func TestPasteIsNotPredicted(t *testing.T) {
	w := shellWorld(t, 300*ms)
	w.p.Typed(w.now, w.screen, []byte("\x1b[200~abc"), 1)
	w.p.Typed(w.now, w.screen, []byte("def\x1b[201~"), 2)
	w.paint()
	if len(w.overlay.Cells) != 0 {
		t.Errorf("a paste is drawn: %+v", w.overlay)
	}
}

// A field for a secret may be below its label, in a program that has echoed everything so far.
func TestFieldForASecretIsNotDrawn(t *testing.T) {
	for label, drawn := range map[string]bool{"Name of the host": true, "Your passphrase": false} {
		s := screen.New(40, 8, screen.Limits{})
		p := predict.New(predict.Always)
		p.SetRTT(100 * ms)
		now, frame := time.Unix(1e9, 0), uint64(0)
		types := func(key, answer string) (cells int) {
			frame++
			p.Typed(now, s, []byte(key), frame)
			o, _ := p.Overlay(now, s)
			now = now.Add(100 * ms)
			s.Write([]byte(answer))
			p.Output(now, s)
			now = now.Add(100 * ms)
			p.Hinted(now, s, wire.Hint{In: frame, Terminal: usual, Context: 5})
			return len(o.Cells)
		}
		field := func(label string) string { return "\x1b[2J\x1b[3;3H" + label + "\x1b[5;3H" }
		types("\r", "\x1b[?1049h"+field("Your name"))
		for range 8 {
			types("a", "a")
			types("b", "b")
			types("\r", field("Another name"))
		}
		types("c", "c")
		types("\r", field(label))
		if n := types("Q", "*"); n > 0 != drawn {
			t.Errorf("%s: %d cells are drawn", label, n)
		}
	}
}
