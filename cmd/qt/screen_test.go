package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm"
)

func TestTitle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(&out, false)
		wantOut := func(why, want string) {
			t.Helper()
			synctest.Wait()
			if got := out.String(); got != want {
				t.Errorf("%s: wrote %q, want %q", why, got, want)
			}
			out.Reset()
		}
		set := func(state migrate.State, attempts int) {
			s.setLink(quicterm.Link{State: state, Since: time.Now(), Attempts: attempts})
		}
		s.Write([]byte("\x1b]2;vim\a"))
		out.Reset()

		set(migrate.Suspect, 0)
		time.Sleep(titleAfter / 2)
		set(migrate.Live, 0)
		time.Sleep(time.Hour)
		wantOut("a short doubt", "")

		since := time.Now().Format(time.TimeOnly)
		set(migrate.Offline, 1)
		time.Sleep(titleAfter)
		wantOut("a second without contact", "\x1b[22;2t\x1b]2;qt: no contact since "+since+", trying (1)\x1b\\")
		set(migrate.Live, 0)
		wantOut("contact again", "\x1b[23;2t\x1b]2;vim\a")

		set(migrate.Offline, 1)
		s.Write([]byte("\x1b[3"))
		out.Reset()
		time.Sleep(titleAfter)
		s.say("words")
		wantOut("inside a sequence of the program", "")
		since = time.Now().Add(-titleAfter).Format(time.TimeOnly)
		s.Write([]byte("1m"))
		wantOut("after it", "1m\r\n[qt: words]\r\n\x1b[22;2t\x1b]2;qt: no contact since "+since+", trying (1)\x1b\\")
		s.restore()
		wantOut("the end", "\x1b[23;2t\x1b]2;vim\a")
	})
}

func TestReplayIsNotAnswered(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, true)
	s.Write([]byte("old\x1b[c\x1b[6"))
	s.Write([]byte("n \x1b[1"))
	s.live()
	s.Write([]byte("mnew\x1b[c"))
	if got, want := out.String(), "old \x1b[1mnew\x1b[c"; got != want {
		t.Errorf("showed %q, want %q", got, want)
	}
}

func TestRestore(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, false)
	s.Write([]byte("\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b]0;never ended"))
	out.Reset()
	s.restore()
	if got := out.String(); strings.Contains(got, "never ended") || got[0] != cancel {
		t.Errorf("wrote %q, want the end of the sequence first, and no more of it", got)
	}
	for _, want := range []string{"\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wrote %q, want %q in it", out.String(), want)
		}
	}
}
