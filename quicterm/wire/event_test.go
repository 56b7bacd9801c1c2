package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

var goldenEvents = []struct {
	event Event
	hex   string
}{
	{Event{Kind: EventBell, Time: 1700000000123, Output: 7, Count: 2}, `a4
		01 09
		02 1b0000018bcfe5687b
		03 07
		0c 02`},
	{Event{
		Kind: EventEnded, Time: 1, Output: 2, Client: "ann@192.0.2.1", Role: RoleShare, By: "bob@192.0.2.2", Cols: 80, Rows: 24,
		Text: "t", Status: new(uint8), Took: 3, Count: 4, Program: "p",
		Port: 80,
	}, `ae
		01 08
		02 01
		03 02
		04 6d 616e6e403139322e302e322e31
		05 01
		06 6d 626f62403139322e302e322e32
		07 1850
		08 1818
		09 61 74
		0a 00
		0b 03
		0c 04
		0d 61 70
		0e 1850`},
}

func TestEventGolden(t *testing.T) {
	for _, g := range goldenEvents {
		b := g.event.Encode()
		if !bytes.Equal(b, unhex(g.hex)) {
			t.Errorf("%+v is encoded as %x, want %x", g.event, b, unhex(g.hex))
		}
		if got, err := ParseEvent(b); err != nil || !reflect.DeepEqual(got, g.event) {
			t.Errorf("parsed as %+v, %v", got, err)
		}
		for n := range b {
			if _, err := ParseEvent(b[:n]); err == nil {
				t.Errorf("the first %d bytes of %+v are parsed", n, g.event)
			}
		}
	}
	kinds := []EventKind{EventAttached, EventDetached, EventDisplaced, EventResized, EventTitle, EventDirectory, EventBegan,
		EventEnded, EventBell, EventNotification, EventPrompt, EventWaits, EventSilent, EventExited, EventOmitted,
		EventPortOpened, EventPortClosed}
	for i, kind := range kinds {
		if int(kind) != i+1 {
			t.Errorf("kind %d is %d", i+1, kind)
		}
	}
}

func TestEventIsPrintable(t *testing.T) {
	e := Event{Text: "a\x1b[2J\n" + strings.Repeat("x", 2*MaxEventText), Client: "ann\x07"}
	got, err := ParseEvent(e.Encode())
	if err != nil || got.Client != "ann?" || !strings.HasPrefix(got.Text, "a?[2J xxx") || len(got.Text) != MaxEventText {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzParseEvent(f *testing.F) {
	for _, g := range goldenEvents {
		f.Add(unhex(g.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvent(b)
		if err != nil {
			return
		}
		if again, err := ParseEvent(e.Encode()); err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%+v, and after encoding %+v, %v", e, again, err)
		}
	})
}
