package status

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/forwards"
)

// golden returns a status, the current time, and how the status is shown.
func golden() (now time.Time, st client.Status, text, asJSON string) {
	now = time.Date(2026, 11, 21, 14, 3, 5, 678_900_000, time.Local)
	st = client.Status{
		Name:    "work",
		Link:    client.LinkState{State: client.Suspect, Since: now.Add(-3 * time.Minute), Attempts: 2},
		RTT:     23456 * time.Microsecond,
		Resumed: 3,
		Unacked: 4,
		Paths: []client.Path{{
			State:     "suspect",
			Interface: "wlan0",
			Local:     netip.MustParseAddrPort("192.168.1.20:51234"),
			Remote:    netip.MustParseAddrPort("203.0.113.7:4433"),
			RTT:       23 * time.Millisecond,
			Loss:      0.0123,
			Sent:      999,
			Received:  999_960,
			Since:     now.Add(-2 * time.Hour),
			Heard:     now.Add(-3 * time.Second),
			Moved:     1,
		}, {
			Transport: client.TCP,
			State:     "standby",
			Local:     netip.AddrPortFrom(netip.Addr{}, 51235),
			Remote:    netip.MustParseAddrPort("[2001:db8::7]:4433"),
			Sent:      1 << 60,
		}, {
			Transport: client.SSH,
			State:     "live",
			RTT:       30 * time.Millisecond,
		}},
		Counters: client.Counters{Duplicates: 5, Reordered: 6, Corrupted: 7, Gaps: 8, GapFrames: 9,
			GapBytes: 12345, Resends: 10, ResentBytes: 0},
	}
	text = `anna@server, process PID, session work: suspect since 14:00:05, 3m ago, attempts 2
  round trip 23.5 ms, resumes 3, input not acknowledged: 4 frames
  duplicates dropped 5, reordered 6, corrupted 7, gaps 8 (12.3 kB), resends 10 (0 B)
  carrier       quic                tcp (udp blocked)   ssh
  interface     wlan0               -                   -
  local         192.168.1.20:51234  *:51235             -
  remote        203.0.113.7:4433    [2001:db8::7]:4433  -
  state         suspect             standby             live
  since         2h ago              -                   -
  round trip    23.0 ms             -                   30.0 ms
  loss          1.2 %               -                   -
  sent          999 B               1.2 EB              0 B
  received      1.0 MB              0 B                 0 B
  moves         1                   0                   0
  last contact  3s ago              -                   -
  -L localhost:8080 to db:80: open 2, sent 999 B, received 1.0 MB
  -D localhost:1080: open 0, sent 0 B, received 0 B`
	asJSON = `[
  {
    "pid": PID,
    "host": "anna@server",
    "session": "work",
    "state": "suspect",
    "since": "2026-11-21T14:00:05.678Z",
    "attempts": 2,
    "rtt_ms": 23.456,
    "resumed": 3,
    "unacknowledged": 4,
    "duplicates": 5,
    "reordered": 6,
    "corrupted": 7,
    "gaps": 8,
    "lost_frames": 9,
    "lost_bytes": 12345,
    "resends": 10,
    "resent_bytes": 0,
    "paths": [
      {
        "transport": "quic",
        "interface": "wlan0",
        "local": "192.168.1.20:51234",
        "remote": "203.0.113.7:4433",
        "state": "suspect",
        "since": "2026-11-21T12:03:05.678Z",
        "rtt_ms": 23,
        "loss": 0.0123,
        "sent_bytes": 999,
        "received_bytes": 999960,
        "moved": 1,
        "last_contact": "2026-11-21T14:03:02.678Z"
      },
      {
        "transport": "tcp",
        "local": "*:51235",
        "remote": "[2001:db8::7]:4433",
        "state": "standby",
        "loss": 0,
        "sent_bytes": 1152921504606846976,
        "received_bytes": 0,
        "moved": 0
      },
      {
        "transport": "ssh",
        "local": "-",
        "remote": "-",
        "state": "live",
        "rtt_ms": 30,
        "loss": 0,
        "sent_bytes": 0,
        "received_bytes": 0,
        "moved": 0
      }
    ],
    "forwards": [
      {
        "kind": "L",
        "listen": "localhost:8080",
        "target": "db:80",
        "open": 2,
        "sent_bytes": 999,
        "received_bytes": 999960
      },
      {
        "kind": "D",
        "listen": "localhost:1080",
        "open": 0,
        "sent_bytes": 0,
        "received_bytes": 0
      }
    ]
  }
]
`
	return now, st, text, asJSON
}

func TestStatusForms(t *testing.T) {
	defer func(l *time.Location) { time.Local = l }(time.Local)
	time.Local = time.UTC
	now, st, text, asJSON := golden()
	r := New("anna@server", st, nil)
	r.PID = 4711
	r.Forwards = []forwards.Status{{Kind: "L", Listen: "localhost:8080", Target: "db:80", Open: 2, Sent: 999, Received: 999_960},
		{Kind: "D", Listen: "localhost:1080"}}
	if got, want := r.Text(now), strings.ReplaceAll(text, "PID", "4711"); got != want {
		t.Errorf("shows\n%s\nwant\n%s", got, want)
	}
	var out bytes.Buffer
	if err := PrintJSON(&out, []*Report{r}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), strings.ReplaceAll(asJSON, "PID", "4711"); got != want {
		t.Errorf("prints\n%s\nwant\n%s", got, want)
	}
	var back []*Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || !reflect.DeepEqual(back, []*Report{r}) {
		t.Errorf("read back: %+v, %v; want %+v", back, err, r)
	}
}

// A session that is not connected yet has a status too.
func TestStatusOfNothing(t *testing.T) {
	r := New("host", client.Status{Name: "1"}, nil)
	want := `host, process PID, session 1: connecting
  round trip -, resumes 0, input not acknowledged: 0 frames
  duplicates dropped 0, reordered 0, corrupted 0, gaps 0 (0 B), resends 0 (0 B)`
	r.PID = 4711
	if got, want := r.Text(time.Now()), strings.ReplaceAll(want, "PID", "4711"); got != want {
		t.Errorf("shows\n%s\nwant\n%s", got, want)
	}
	var out bytes.Buffer
	if err := PrintJSON(&out, []*Report{r}); err != nil || !strings.Contains(out.String(), `"paths": []`) {
		t.Errorf("prints %s, %v; want an empty array of paths", out.String(), err)
	}
}
