package predict_test

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A talk types keys one by one, and says what the program answers to each.
type talk struct {
	p     *predict.Predictor
	s     *screen.Screen
	now   time.Time
	hint  wire.Hint
	drawn int // cells after the last key
}

func newTalk(flags wire.TerminalFlags) *talk {
	t := &talk{p: predict.New(predict.Always), s: screen.New(40, 8, screen.Limits{}), now: time.Unix(1e9, 0)}
	t.p.SetRTT(100 * ms)
	t.hint = wire.Hint{Terminal: flags, Context: 5}
	return t
}

func (t *talk) types(key, answer string) {
	t.hint.In++
	t.p.Typed(t.now, t.s, []byte(key), t.hint.In)
	o, _ := t.p.Overlay(t.now, t.s)
	t.drawn = len(o.Cells)
	t.now = t.now.Add(100 * ms)
	if answer != "" {
		t.s.Write([]byte(answer))
		t.p.Output(t.now, t.s)
	}
	t.now = t.now.Add(50 * ms)
	t.p.Hinted(t.now, t.s, t.hint)
}

// A program may turn the echo off behind its question: so a question that is new draws nothing before an
// echo, also in a program that has echoed the answers to others.
func TestNewQuestionIsNotTrusted(t *testing.T) {
	w := newTalk(wire.Canonical | wire.Echo | usual)
	for range 5 {
		w.types("\r", "\r\nName of the host? ")
		w.types("a", "a")
		w.types("b", "b")
	}
	w.types("\r", "\r\nName of the host? ")
	if w.types("a", "a"); w.drawn != 1 {
		t.Errorf("behind a question that is known, %d cells are drawn", w.drawn)
	}
	w.types("\r", "\r\nSay the words, friend: ")
	if w.types("Q", ""); w.drawn != 0 {
		t.Errorf("behind a new question, %d cells are drawn", w.drawn)
	}
}

// What is typed behind Enter has its place when the program has answered, however long it takes.
func TestSlowAnswerToEnter(t *testing.T) {
	w := newTalk(usual)
	w.types("\r", "\r\nsql> ")
	for range 4 {
		w.types("a", "a")
		w.types("b", "b")
		w.types("\r", "\r\nsql> ")
	}
	w.types("c", "c")
	w.types("\r", "")
	for range 3 {
		if w.types("d", ""); w.drawn != 0 {
			t.Fatalf("%d cells are drawn in the line that Enter has ended", w.drawn)
		}
	}
	w.types("d", "\r\nsql> dddd")
	if w.types("e", "e"); w.drawn == 0 {
		t.Error("nothing is drawn behind the prompt that came late")
	}
}

// Behind the last column a line goes on in the next row.
func TestLongLine(t *testing.T) {
	w := shellWorld(t, 200*ms)
	w.types("cat\r", 20*ms)
	w.pass(time.Second)
	w.types("first\r", 300*ms) // proves the echo
	w.pass(time.Second)
	w.keys, w.prompt = 0, 0
	w.types("this line does not end before the screen does, but in its second row", 50*ms)
	w.types("\x7f\x7f\x7fline", 50*ms)
	if late := w.keys - w.prompt; late > 1 {
		t.Errorf("%d of %d keys are drawn late", late, w.keys) // in the last column, no cursor is drawn behind it
	}
	w.settle()
	if w.wrong != 0 {
		t.Errorf("%d wrong cells", w.wrong)
	}
}
