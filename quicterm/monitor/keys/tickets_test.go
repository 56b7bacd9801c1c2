//go:build linux || darwin

package keys

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var today = time.Unix(1_900_000_000, 0)

// A daemon makes a key each day and keeps the last three.
func TestTicketKeysRotate(t *testing.T) {
	var keys []ticketKey
	for day := range 10 {
		for hour := range 24 {
			now := today.Add(time.Duration(24*day+hour) * time.Hour)
			keys = rotate(keys, now)
			if want := min(day+1, maxTicketKeys); len(keys) != want {
				t.Fatalf("day %d, hour %d: %d keys, want %d", day, hour, len(keys), want)
			}
			for i, k := range keys {
				if want := now.Add(-time.Duration(24*i+hour) * time.Hour); !k.made.Equal(want) {
					t.Fatalf("day %d, hour %d: key %d is of %v, want %v", day, hour, i, k.made, want)
				}
			}
		}
	}
	if old := rotate(keys, today.Add(30*24*time.Hour)); len(old) != 1 || old[0].key == keys[0].key {
		t.Error("old keys are good after a month")
	}
	back := rotate(keys, today.Add(-time.Hour)) // the clock was wrong before
	if len(back) != 1 {
		t.Errorf("%d keys after the clock was set back, want a new one", len(back))
	}
	if again := rotate(append(back, keys...), today); again[0] != back[0] {
		t.Error("keys with a time in the future replace today's")
	}
}

// renewed renews keys, and returns them.
func renewed(t *Tickets, now time.Time) [][32]byte {
	t.Renew(now)
	return t.Current()
}

func newTicketKeys(file string) (*Tickets, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return &Tickets{file: file, log: slog.New(slog.NewTextHandler(log, nil))}, log
}

func TestTicketKeysFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ticket_keys")
	one, log := newTicketKeys(file)
	first := renewed(one, today)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("file: %v, %v; want mode 0600", info.Mode(), err)
	}
	other, _ := newTicketKeys(file)
	if got := renewed(other, today.Add(time.Minute)); !slices.Equal(got, first) {
		t.Error("a second daemon has other keys")
	}
	tomorrow := today.Add(25 * time.Hour)
	second := renewed(other, tomorrow)
	if len(second) != 2 || second[1] != first[0] {
		t.Errorf("%d keys on the second day, want a new one and the first", len(second))
	}
	if got := renewed(one, tomorrow.Add(time.Minute)); !slices.Equal(got, second) {
		t.Error("two daemons have different keys after both have renewed them")
	}
	for what, content := range map[string]string{
		"cut off": "short", "too long": strings.Repeat("x", 4*ticketKeySize), "nonsense": strings.Repeat("\xff", ticketKeySize),
	} {
		log.Reset()
		os.WriteFile(file, []byte(content), 0o600)
		if got := renewed(one, tomorrow); !slices.Equal(got, second) {
			t.Errorf("a file that is %s: the daemon loses its keys", what)
		}
		if what != "nonsense" && strings.Count(log.String(), "damaged") != 1 {
			t.Errorf("a file that is %s: log %q", what, log)
		}
		if third, _ := newTicketKeys(file); !slices.Equal(renewed(third, tomorrow), second) {
			t.Errorf("a file that is %s: it is not replaced", what)
		}
	}
	os.Remove(file)
	if got := renewed(one, tomorrow); !slices.Equal(got, second) {
		t.Error("keys are lost with their file")
	}
}

// Without a directory for the file, keys are in memory, and are renewed as usual.
func TestTicketKeysInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	keys, log := newTicketKeys(filepath.Join(dir, "ticket_keys"))
	first := renewed(keys, today)
	for hour := range 24 {
		if got := renewed(keys, today.Add(time.Duration(hour)*time.Hour)); !slices.Equal(got, first) {
			t.Fatalf("other keys after %d hours", hour)
		}
	}
	second := renewed(keys, today.Add(24*time.Hour))
	if len(second) != 2 || second[1] != first[0] {
		t.Errorf("%d keys on the second day, want a new one and the first", len(second))
	}
	if n := strings.Count(log.String(), "memory only"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, log)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	renewed(keys, today.Add(25*time.Hour))
	next, _ := newTicketKeys(filepath.Join(dir, "ticket_keys"))
	if !slices.Equal(renewed(next, today.Add(26*time.Hour)), second) {
		t.Error("the keys are not written when there is a directory again")
	}
}
