//go:build linux || darwin

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An operator ends sessions, and takes access. The log says who has asked, and the holder is told by whom and why.
func TestOperator(t *testing.T) {
	onHost(t, func(h *host) {
		log := new(notebook)
		h.server.log = slog.New(slog.NewTextHandler(log, nil))
		a := h.attach()
		b := h.attach()
		var told []wire.Open
		var ends []wire.End
		h.setHolders(&overheard{Holders: h.holders, hear: func(open *wire.Open, m wire.Message) {
			var end wire.End
			if m.Decode(&end) == nil {
				told, ends = append(told, *open), append(ends, end)
			}
		}})
		self := h.server.self.Name
		asked := fmt.Sprintf("asked_by=%d ", os.Getuid())
		post := func(path string, form url.Values, answer any) int {
			t.Helper()
			r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
			r.RemoteAddr = fmt.Sprint(os.Getuid())
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.server.controlling().ServeHTTP(w, r)
			if w.Code == 200 {
				if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
					t.Fatal(err)
				}
			}
			return w.Code
		}
		var ended []Ended
		if code := post("/end", url.Values{"id": {"", "abc", "0123456789", a.ID.String()[:8]}, "reason": {"kernel\x1b update"}}, &ended); code != 200 || len(ended) != 4 {
			t.Fatalf("status %d, %+v", code, ended)
		}
		for i, want := range []string{"at least 4 digits", "at least 4 digits", "no such session", ""} {
			if (ended[i].Error == "") != (want == "") || !strings.Contains(ended[i].Error, want) {
				t.Errorf("got %+v, want %q", ended[i], want)
			}
		}
		if one := ended[3]; one.ID != a.ID.String() || one.Account != self || one.Name != a.Name {
			t.Errorf("got %+v", one)
		}
		if len(ends) != 1 || told[0].Client != self || ends[0].Reason != "kernel? update" {
			t.Errorf("the holder is told %+v, %+v", told, ends)
		}
		log.await(t, "event=kill "+asked+"account="+self, 1)
		log.await(t, `id=`+a.ID.Short()+` reason="kernel? update"`, 1)

		var revoked wire.Revoked
		if code := post("/revoke", url.Values{"account": {self}}, &revoked); code != 200 || revoked.Clients == 0 || revoked.Silent != 0 {
			t.Errorf("status %d, %+v of %s", code, revoked, b.Name)
		}
		log.await(t, asked+"account="+self, 2)
		log.await(t, "event=revoke revoked=all", 1)
		sum := strings.Repeat("00", 32)
		if code := post("/revoke", url.Values{"key": {sum}}, &revoked); code != 200 || revoked.Clients != 0 {
			t.Errorf("another key: status %d, %+v", code, revoked)
		}
		for _, form := range []url.Values{
			{}, {"key": {"00"}}, {"key": {"no"}}, {"account": {self}, "key": {sum}}, {"account": {"no such account"}},
			{"account": {strings.Repeat("x", maxOperatorForm)}},
		} {
			if code := post("/revoke", form, &revoked); code != 400 {
				t.Errorf("%.80v: status %d", form, code)
			}
		}
	})
}

// An account whose directory does not answer, such as one on a file system of its own, keeps no operator from the others.
func TestOperatorAndHungAccount(t *testing.T) {
	onHost(t, func(h *host) {
		a := h.attach()
		hung := &hungAccount{Holders: h.holders, release: make(chan struct{})}
		defer close(hung.release)
		h.setHolders(hung)
		ctx, cancel := context.WithTimeout(h.t.Context(), operatorTime)
		defer cancel()
		by := operator{name: "root"}
		revoked, err := h.server.revokeAccess(ctx, by, "", make([]byte, sha256.Size))
		if err != nil || revoked.Silent != 1 {
			t.Errorf("revoked %+v, %v", revoked, err)
		}
		ctx, cancel = context.WithTimeout(h.t.Context(), operatorTime)
		defer cancel()
		if ended := h.server.end(ctx, by, []string{a.ID.String()}, ""); ended[0].Error != "" {
			t.Errorf("got %+v", ended)
		}
	})
}

// A hungAccount has an account beside that of the test, whose directory cannot be read until release is closed.
type hungAccount struct {
	*holdertest.Holders
	release chan struct{}
}

const hungUID = 4242

func (h *hungAccount) Accounts() []uint32 { return append([]uint32{hungUID}, h.Holders.Accounts()...) }

func (h *hungAccount) Sessions(uid uint32) []wire.SessionID {
	if uid == hungUID {
		<-h.release
		return nil
	}
	return h.Holders.Sessions(uid)
}

// An overheard hears what holders are asked.
type overheard struct {
	*holdertest.Holders
	hear func(*wire.Open, wire.Message)
}

func (o *overheard) Ask(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message) (wire.Message, error) {
	o.hear(open, m)
	return o.Holders.Ask(ctx, uid, id, open, m)
}

// The beginning of an id must name one session.
func TestLocate(t *testing.T) {
	all := []inspected{{uid: 1, id: wire.SessionID{0x12, 0x34, 0x56}}, {uid: 2, id: wire.SessionID{0x12, 0x34, 0x57}}}
	for _, test := range []struct {
		prefix string
		uid    uint32 // 0 if there is an error
	}{{"1234", 0}, {"123456", 1}, {"123457", 2}, {"123458", 0}, {"123", 0}, {all[1].id.String(), 2}} {
		if got, err := locate(all, test.prefix); got.uid != test.uid && err == nil || (err == nil) != (test.uid > 0) {
			t.Errorf("%s: got %v, %v", test.prefix, got, err)
		}
	}
}
