package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// recorded has a second between its events, except the last pause.
const recorded = `{"version":2,"width":80,"height":24}
[1,"o","a"]
[2,"m","first"]
[3,"o","b"]
[3,"r","100x30"]
[4,"o","c"]
[5,"m","second"]
[6,"i","typed"]
[6,"o","d"]
[3600,"o","e"]
`

// timeline records what is shown when, in seconds.
type timeline struct {
	start time.Time
	text  strings.Builder
}

func (l *timeline) Write(b []byte) (int, error) {
	fmt.Fprintf(&l.text, "%s@%v ", b, time.Since(l.start).Seconds())
	return len(b), nil
}

// keyAt is a key that is typed after a time.
type keyAt struct {
	after time.Duration
	key   byte
}

// playWith plays the recording, and returns what it has shown.
func playWith(t *testing.T, p *player, keys ...keyAt) string {
	t.Helper()
	line := &timeline{start: time.Now()}
	open := func() (*asciicast.Reader, error) { return asciicast.NewReader(strings.NewReader(recorded)) }
	typed := make(chan byte)
	go func() {
		for _, k := range keys {
			time.Sleep(k.after)
			typed <- k.key
		}
	}()
	p.out, p.keys = line, typed
	p.rewind = func() (*asciicast.Reader, error) {
		line.Write([]byte("rewind"))
		return open()
	}
	var err error
	if p.events, err = open(); err == nil {
		err = p.play(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(line.text.String())
}

func TestPlayer(t *testing.T) {
	const s = time.Second
	for why, test := range map[string]struct {
		player player
		keys   []keyAt
		want   string
	}{
		"as it was":      {player{speed: 1}, nil, "a@1 b@3 c@4 d@6 e@3600"},
		"short pauses":   {player{speed: 1, idle: 2 * s}, nil, "a@1 b@3 c@4 d@6 e@8"},
		"fast":           {player{speed: 4, idle: 2 * s}, nil, "a@0.25 b@0.75 c@1 d@1.5 e@2"},
		"pause":          {player{speed: 1}, []keyAt{{3500 * time.Millisecond, ' '}, {10 * s, ' '}, {11 * s, 'q'}}, "a@1 b@3 c@14 d@16"},
		"step":           {player{speed: 1}, []keyAt{{s / 2, ' '}, {s, '.'}, {s, '.'}, {s, '.'}, {s, 'q'}}, "a@1.5 b@2.5 c@3.5"},
		"step and go on": {player{speed: 1}, []keyAt{{s / 2, ' '}, {s, '.'}, {s, ' '}, {2500 * time.Millisecond, 3}}, "a@1.5 b@4.5"},
		"faster":         {player{speed: 1, idle: 2 * s}, []keyAt{{3500 * time.Millisecond, '+'}}, "a@1 b@3 c@3.75 d@4.75 e@5.75"},
		"slower":         {player{speed: 1, idle: 2 * s}, []keyAt{{3500 * time.Millisecond, '-'}}, "a@1 b@3 c@4.5 d@8.5 e@12.5"},
		"next markers":   {player{speed: 1, idle: 2 * s}, []keyAt{{s / 2, ']'}, {s / 4, ']'}}, "a@0.5 b@0.75 c@0.75 d@1.75 e@3.75"},
		"no marker":      {player{speed: 1, idle: 2 * s}, []keyAt{{5500 * time.Millisecond, ']'}}, "a@1 b@3 c@4 d@5.5 e@5.5"},
		"next, paused":   {player{speed: 1}, []keyAt{{s / 2, ' '}, {s, ']'}, {s, '.'}, {s, 'q'}}, "a@1.5 b@2.5"},
		"previous": {player{speed: 1, idle: 2 * s}, []keyAt{{5500 * time.Millisecond, '['}},
			"a@1 b@3 c@4 rewind@5.5 a@5.5 b@6.5 c@7.5 d@9.5 e@11.5"},
		"previous twice": {player{speed: 1, idle: 2 * s}, []keyAt{{5500 * time.Millisecond, '['}, {s / 2, '['}},
			"a@1 b@3 c@4 rewind@5.5 a@5.5 rewind@6 a@7 b@9 c@10 d@12 e@14"},
		"other keys": {player{speed: 1, idle: 2 * s}, []keyAt{{s / 2, 'x'}, {0, '.'}, {0, '\r'}}, "a@1 b@3 c@4 d@6 e@8"},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := playWith(t, &test.player, test.keys...); got != test.want {
					t.Errorf("shown: %s\nwant:  %s", got, test.want)
				}
			})
		})
	}
}

func TestPlayerEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("a signal")
		ctx, cancel := context.WithCancelCause(t.Context())
		events, err := asciicast.NewReader(strings.NewReader(recorded))
		if err != nil {
			t.Fatal(err)
		}
		p := &player{events: events, out: new(strings.Builder), speed: 1}
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		if err := p.play(ctx); err != cause {
			t.Errorf("error %v, want %v", err, cause)
		}
		gone := make(chan byte)
		close(gone)
		p.keys = gone
		if err := p.play(t.Context()); err != nil {
			t.Errorf("the terminal is gone: %v", err)
		}
	})
}

// Sizes of the recorded terminal are passed on at their time.
func TestPlayerResizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []string
		start := time.Now()
		playWith(t, &player{speed: 1, idle: time.Second, resize: func(size wire.Size) {
			sizes = append(sizes, fmt.Sprintf("%dx%d@%v", size.Cols, size.Rows, time.Since(start).Seconds()))
		}})
		if want := "100x30@3"; strings.Join(sizes, " ") != want {
			t.Errorf("sizes %q, want %q", sizes, want)
		}
	})
}
