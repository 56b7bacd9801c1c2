//go:build linux || darwin

package monitor

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// hostile adds sessions whose holders answer as their account likes.
type hostile struct {
	*holdertest.Holders
	answers map[wire.SessionID]func(context.Context) (wire.Message, error)
	memory  map[uint32]uint64
}

func (f *hostile) Sessions(uid uint32) []wire.SessionID {
	return slices.AppendSeq(f.Holders.Sessions(uid), maps.Keys(f.answers))
}

func (f *hostile) Ask(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message) (wire.Message, error) {
	if answer := f.answers[id]; answer != nil {
		return answer(ctx)
	}
	return f.Holders.Ask(ctx, uid, id, open, m)
}

func (f *hostile) Memory() map[uint32]uint64 { return f.memory }

// add adds a session whose holder answers its query by what f returns.
func (f *hostile) add(answer func(ctx context.Context, id wire.SessionID) (wire.Message, error)) {
	id := wire.SessionID{0xbad & 0xff, byte(len(f.answers)), byte(len(f.answers) >> 8)}
	f.answers[id] = func(ctx context.Context) (wire.Message, error) { return answer(ctx, id) }
}

// state adds a session whose holder answers with a state, after change has changed it and
// what it says of the session.
func (f *hostile) state(t *testing.T, change func(*wire.State, *wire.Info)) {
	f.add(func(_ context.Context, id wire.SessionID) (wire.Message, error) {
		info := wire.Info{ID: id, Name: "fake", Phase: wire.PhaseDetached, PTY: true}
		s := &wire.State{Visible: true, Own: true, PTY: true, Phase: info.Phase, Name: info.Name, Since: time.Now().UnixNano()}
		change(s, &info)
		if s.Info == nil {
			var err error
			if s.Info, err = wire.EncodeInfo(info); err != nil {
				t.Error(err)
			}
		}
		return wire.New(s)
	})
}

// onHostile calls f with a host on which an account also has hostile holders.
func onHostile(t *testing.T, f func(h *host, bad *hostile)) {
	onHost(t, func(h *host) {
		bad := &hostile{Holders: h.holders, answers: make(map[wire.SessionID]func(context.Context) (wire.Message, error))}
		h.setHolders(bad)
		f(h, bad)
	})
}

// Holders that answer badly, or not at all, are left out of the listing: the others are
// listed.
func TestBrokenHoldersAreLeftOut(t *testing.T) {
	onHostile(t, func(h *host, bad *hostile) {
		good := h.attach()
		bad.add(func(context.Context, wire.SessionID) (wire.Message, error) { return wire.Message{}, fs.ErrPermission })
		bad.add(func(context.Context, wire.SessionID) (wire.Message, error) {
			return wire.Message{Type: wire.TypeState}, nil
		})
		bad.add(func(context.Context, wire.SessionID) (wire.Message, error) { return wire.New(&wire.Done{}) })
		bad.state(t, func(s *wire.State, _ *wire.Info) { s.Info = []byte{0xff} })
		bad.state(t, func(s *wire.State, _ *wire.Info) { s.Info = []byte{} })
		bad.state(t, func(s *wire.State, _ *wire.Info) { s.Info = []byte{0xa1, 0x02, 0x01} })                // a number as the name
		bad.state(t, func(s *wire.State, _ *wire.Info) { s.Info = []byte("\xa0\xa0") })                      // two values
		bad.state(t, func(s *wire.State, _ *wire.Info) { s.Info = []byte(strings.Repeat("\x81", 9) + "0") }) // too deep
		bad.state(t, func(_ *wire.State, i *wire.Info) { i.ID = good.ID })
		bad.state(t, func(_ *wire.State, i *wire.Info) { i.Name = "another" })
		bad.state(t, func(s *wire.State, i *wire.Info) { s.Name, i.Name = "\x1b]0;", "\x1b]0;" })
		bad.state(t, func(s *wire.State, i *wire.Info) { s.Name, i.Name = "", "" })
		start := time.Now()
		listing := h.list()
		if d := time.Since(start); d > askTime/10 {
			t.Errorf("the listing took %v", d)
		}
		bad.add(func(ctx context.Context, _ wire.SessionID) (wire.Message, error) {
			<-ctx.Done()
			return wire.Message{}, ctx.Err()
		})
		start = time.Now()
		again := h.list()
		if d := time.Since(start); d < askTime || d > askTime+100*time.Millisecond {
			t.Errorf("with a holder that hangs the listing took %v, want about %v", d, askTime)
		}
		for _, l := range []*wire.Listing{listing, again} {
			if len(l.Sessions) != 1 || l.More != 0 {
				t.Fatalf("%d sessions and %d more, want the one that is well", len(l.Sessions), l.More)
			}
			if info, err := wire.DecodeInfo(l.Sessions[0]); err != nil || info.ID != good.ID {
				t.Errorf("%+v, %v; want session %s", info, err, good.Name)
			}
		}
	})
}

// However many holders hang, all others are asked, and in the same time.
func TestHoldersThatHang(t *testing.T) {
	onHostile(t, func(h *host, bad *hostile) {
		good := h.attach()
		for range processes.MaxSockets - 1 {
			bad.add(func(ctx context.Context, _ wire.SessionID) (wire.Message, error) {
				<-ctx.Done()
				return wire.Message{}, ctx.Err()
			})
		}
		start := time.Now()
		if l := h.list(); len(l.Sessions) != 1 {
			t.Errorf("%d sessions are listed, want 1", len(l.Sessions))
		}
		if d := time.Since(start); d > askTime+100*time.Millisecond {
			t.Errorf("the listing took %v, want at most %v", d, askTime)
		}
		e, err := h.server.find(context.Background(), good.UID, &wire.Open{}, good.Name, detached)
		if err != nil || e.id != good.ID {
			t.Errorf("the session is not found: %v", err)
		}
		_, err = h.server.find(context.Background(), good.UID, &wire.Open{}, "none", detached)
		if err == nil || !strings.Contains(err.Error(), "sessions that do not answer: 3999") {
			t.Errorf("error %v, want the number of those that do not answer", err)
		}
	})
}

// What is kept of the answers of an account's holders for a request is bounded.
func TestAnswersAreBounded(t *testing.T) {
	onHostile(t, func(h *host, bad *hostile) {
		long := strings.Repeat("x", 1200)
		for range processes.MaxSockets {
			bad.state(t, func(_ *wire.State, i *wire.Info) { i.Members = []wire.Member{{Client: long}, {Client: long[:500]}} })
		}
		uid := uint32(os.Geteuid())
		entries, _ := h.server.ask(context.Background(), &wire.Open{}, uid, bad.Sessions(uid), &wire.Query{})
		kept := 0
		for _, e := range entries {
			kept += len(e.state.Info)
		}
		if len(entries) != processes.MaxSockets || kept > maxCollected || kept < maxCollected-wire.MaxAnswer {
			t.Errorf("%d bytes of %d sessions are kept, want %d of %d", kept, len(entries), maxCollected, processes.MaxSockets)
		}
		if l := h.list(); len(l.Sessions)+l.More != processes.MaxSockets {
			t.Errorf("%d sessions are listed and %d left out, want %d", len(l.Sessions), l.More, processes.MaxSockets)
		}
	})
}

// A restricted key's session never stands for one of the account's own.
func TestPickPrefersOwn(t *testing.T) {
	add := func(entries []entry, first byte, name string, own bool) []entry {
		return append(entries, entry{
			id:    wire.SessionID{first},
			state: wire.State{Name: name, Own: own, PTY: true, Visible: true, Phase: wire.PhaseDetached},
		})
	}
	var entries []entry
	entries = add(entries, 1, "work", false)
	entries = add(entries, 2, "work", true)
	entries = add(entries, 3, "twice", false)
	entries = add(entries, 4, "twice", false)
	for name, want := range map[string]byte{"": 2, "work": 2, "0100": 1, "twice": 0, "none": 0} {
		e, err := pick(entries, name, detached)
		if (err == nil) != (want != 0) || err == nil && e.id[0] != want {
			t.Errorf("%q picks %v, %v; want %d", name, e, err, want)
		}
	}
}
