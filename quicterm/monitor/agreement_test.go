//go:build linux || darwin

package monitor

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// This file searches all that a dishonest network process can do with what it sees and makes, within
// bounds, with keys as symbols (Dolev and Yao): nothing is guessed, and a signature or a MAC is made only with its
// key. Two servers each have accounts 0 and 1. A user's key opens both accounts on both servers. The
// network processes of both servers are the attacker's, which is more than one of them; the monitors, the
// holders and the user's clients are honest. There are two moments: what is of one is outside the window
// in the other.

// A loginDesign is what a login signs and checks.
type loginDesign struct {
	opaque   bool // the signed text is the network process's, as in the first version of the statement
	untagged bool // a time that a server has said is signed as that of the client's own clock
	forgets  bool // a monitor that was started again accepts clients' times at once
}

// A claimedTime is the time of a statement.
type claimedTime struct {
	by               uint8 // one of the following
	server, boot, at uint8 // boot counts the starts of the monitor
}

const (
	byClock   uint8 = iota // of the client
	byMonitor              // said in an Offer
	byNetwork              // made up by the attacker
)

// claimedTimes are all that a client may sign: times of its clock, those of monitors, and a made-up one.
var claimedTimes = []claimedTime{
	{by: byClock, at: 0}, {by: byClock, at: 1},
	{by: byMonitor, at: 0}, {by: byMonitor, at: 1}, {by: byMonitor, boot: 1, at: 0}, {by: byMonitor, boot: 1, at: 1},
	{by: byMonitor, server: 1, at: 0}, {by: byMonitor, server: 1, at: 1},
	{by: byNetwork, at: 1},
}

// A statement is what a client signs: see auth.Statement.
type statement struct {
	host, account uint8
	time          claimedTime
	exporter      uint8 // number of the client's connection
}

// A clientRun is a connection of the user's client, to one server for one account.
type clientRun struct{ server, account uint8 }

// A loginState is a state of the search. Signatures are bits: that of run r over time t is r*16+t.
type loginState struct {
	now      uint8
	boot     uint8  // of the first server
	floor    uint8  // of it: times of clients before this are refused
	made     uint32 // signatures, all of which the attacker has
	late     uint32 // those that were made in the second moment
	accepted uint32
	used     uint8 // connections that count as used: server*4 + account*2 + run
}

// signed returns the text of a signature.
func (d loginDesign) signed(runs []clientRun, bit int) statement {
	r, t := bit/16, claimedTimes[bit%16]
	if d.opaque {
		return statement{exporter: uint8(r)} // and the account, which the network process need not tell
	}
	if d.untagged && t.by == byNetwork {
		t.by = byClock
	}
	return statement{runs[r].server, runs[r].account, t, uint8(r)}
}

// fresh reports whether a monitor accepts a time.
func (d loginDesign) fresh(s loginState, server uint8, t claimedTime) bool {
	boot := uint8(0)
	if server == 0 {
		boot = s.boot
	}
	switch {
	case d.opaque:
		return true
	case t.by == byClock:
		return t.at == s.now && (boot == 0 || d.forgets || t.at >= s.floor)
	case t.by == byMonitor:
		return t.server == server && t.boot == boot && t.at == s.now
	}
	return false
}

// A move is what happens in a search, with its numbers.
type move struct {
	what    string
	numbers [4]uint8
}

func (m move) String() string {
	var numbers []any
	for _, n := range m.numbers[:strings.Count(m.what, "%")] {
		numbers = append(numbers, n)
	}
	return fmt.Sprintf(m.what, numbers...)
}

// next calls f with what may happen next.
func (d loginDesign) next(runs []clientRun, s loginState, f func(what move, next loginState, broken ...string)) {
	if s.now == 0 {
		n := s
		n.now, n.used = 1, 0 // at worst, monitors forget all that is outside the window
		f(move{what: "time passes"}, n)
	}
	if s.boot == 0 {
		n := s
		n.boot, n.floor, n.used = 1, s.now+1, s.used&^0xf
		f(move{what: "the first monitor is started again"}, n)
	}
	if d.opaque && s.used != 0 {
		n := s
		n.used = 0
		f(move{what: "16386 logins of another account"}, n)
	}
	for r := range runs {
		ofRun := uint32(0xffff) << (16 * r)
		const clocks = uint32(0x3)
		for t, at := range claimedTimes {
			own := at.by == byClock
			before := clocks << (16 * r)
			if !own {
				before = ofRun &^ before
			}
			future := at.at > s.now && at.by != byNetwork || own && at.at != s.now
			if future || at.by == byMonitor && at.server == 0 && at.boot > s.boot || s.made&before != 0 {
				continue // a client signs its own time once, and a server's once
			}
			n := s
			n.made |= 1 << (16*r + t)
			if s.now == 1 {
				n.late |= 1 << (16*r + t)
			}
			f(move{"client %d signs for server %d, account %d, by time %d", [4]uint8{uint8(r), runs[r].server, runs[r].account, uint8(t)}}, n)
		}
	}
	d.present(runs, s, f)
}

// present calls f with all logins that the attacker gets by the signatures that it has.
func (d loginDesign) present(runs []clientRun, s loginState, f func(what move, next loginState, broken ...string)) {
	var known []claimedTime
	for bit := range 16 * len(runs) {
		if s.made&(1<<bit) == 0 {
			continue
		}
		if t := d.signed(runs, bit).time; !slices.Contains(known, t) {
			known = append(known, t)
		}
	}
	for bit := range 16 * len(runs) {
		if s.made&(1<<bit) == 0 {
			continue
		}
		signed, run := d.signed(runs, bit), runs[bit/16]
		for place := range 4 * len(runs) { // servers, accounts, connections
			server, account, exporter := uint8(place&1), uint8(place>>1&1), uint8(place>>2)
			for _, at := range known {
				// What the monitor builds, and verifies.
				built := statement{server, account, at, exporter}
				if d.opaque {
					built = statement{exporter: exporter}
				}
				usedBit := uint8(1) << (server*4 + account*2 + exporter&1)
				if built != signed || !d.fresh(s, server, at) || s.used&usedBit != 0 {
					continue
				}
				var broken []string
				wrong := func(is bool, what string) {
					if is {
						broken = append(broken, what)
					}
				}
				wrong(account != run.account, "account")
				wrong(server != run.server, "server")
				wrong(int(exporter) != bit/16, "connection")
				wrong(s.accepted&(1<<bit) != 0, "once")
				wrong((s.late&(1<<bit) != 0) != (s.now == 1), "time")
				n := s
				n.accepted |= 1 << bit
				n.used |= usedBit
				f(move{"the attacker has server %d, account %d by the signature of client %d, time %d", [4]uint8{server, account, uint8(bit / 16), uint8(bit % 16)}}, n, broken...)
			}
		}
	}
}

// search visits all states, and returns a shortest attack on each property that does not hold. If some
// attacks are known to exist, it ends when it has found so many.
func search[S comparable](begin S, known int, next func(S, func(what move, next S, broken ...string))) (attacks map[string]string, states int) {
	type step struct {
		from S
		what move
	}
	reached := map[S]step{begin: {}}
	attacks = make(map[string]string)
	for queue := []S{begin}; len(queue) > 0 && (known == 0 || len(attacks) < known); queue = queue[1:] {
		s := queue[0]
		next(s, func(what move, n S, broken ...string) {
			if _, seen := reached[n]; !seen {
				reached[n] = step{s, what}
				queue = append(queue, n)
			}
			for _, property := range broken {
				if attacks[property] != "" {
					continue
				}
				steps := []string{what.String()}
				for at := s; at != begin; at = reached[at].from {
					steps = append(steps, reached[at].what.String())
				}
				slices.Reverse(steps)
				attacks[property] = strings.Join(steps, "; ")
			}
		})
	}
	return attacks, len(reached)
}

// attacksOn returns the attacks on a design of logins with any two runs of clients.
func attacksOn(d loginDesign, known int) (attacks map[string]string, states int) {
	attacks = make(map[string]string)
	places := []clientRun{{0, 0}, {0, 1}, {1, 0}, {1, 1}}
	for i, a := range places {
		for _, b := range places[i:] {
			runs := []clientRun{a, b}
			found, n := search(loginState{}, known, func(s loginState, f func(move, loginState, ...string)) { d.next(runs, s, f) })
			states += n
			for property, attack := range found {
				if attacks[property] == "" {
					attacks[property] = attack
				}
			}
			if known > 0 && len(attacks) >= known {
				return attacks, states
			}
		}
	}
	return attacks, states
}

// wantAttacks checks that a search has found attacks on exactly some properties.
func wantAttacks(t *testing.T, why string, attacks map[string]string, states int, want ...string) {
	t.Helper()
	t.Logf("%s: %d states", why, states)
	for property, attack := range attacks {
		if !slices.Contains(want, property) {
			t.Errorf("%s: an attack on agreement about the %s: %s", why, property, attack)
		} else {
			t.Logf("%s: %s: %s", why, property, attack)
		}
	}
	for _, property := range want {
		if attacks[property] == "" {
			t.Errorf("%s: the search does not find the attack on the %s", why, property)
		}
	}
}

// A dishonest network process gets no login that the user's client has not signed for: server, account,
// connection and time agree, and each signature counts once. With other designs, the search finds the
// attacks.
func TestAgreementOnLogins(t *testing.T) {
	wantFields(t, auth.Statement{}, "Host", "Account", "Time", "Exporter")
	for _, test := range []struct {
		why    string
		design loginDesign
		want   []string
	}{
		{"as specified", loginDesign{}, nil},
		{"the first version of the statement", loginDesign{opaque: true}, []string{"account", "server", "once", "time"}},
		{"a server's time signed as the client's", loginDesign{untagged: true}, []string{"time"}},
		{"a restart that is not noticed", loginDesign{forgets: true}, []string{"once"}},
	} {
		attacks, states := attacksOn(test.design, len(test.want))
		wantAttacks(t, test.why, attacks, states, test.want...)
	}
}

// What the model assumes of statements and of times is what the code does: no two statements are signed by one text, and
// a monitor accepts the times that the model says it accepts.
func TestModelIsCode(t *testing.T) {
	moment := func(at uint8) (time.Time, time.Duration) {
		d := time.Duration(at) * time.Hour
		return time.Unix(1_900_000_000, 0).Add(d), 10*time.Minute + d
	}
	exporters := byte(0)
	start := func(file string, at uint8) *access.Signatures {
		now, _ := moment(at)
		return access.LoadSignatures(file, now, slog.New(slog.DiscardHandler))
	}
	dir := t.TempDir()
	foreign := []*access.Signatures{start(filepath.Join(dir, "a"), 0), start(filepath.Join(dir, "b"), 0)} // of the other server, by boot
	for server := range uint8(2) {
		for restarted := range 3 { // in the first moment, in the second, or not
			file := filepath.Join(t.TempDir(), "signatures")
			monitors := []*access.Signatures{start(file, 0), start(file, 0)} // by boot
			accept := func(m *access.Signatures, text []byte, at uint8) error {
				now, uptime := moment(at)
				exporters++
				return m.Accept(1, &auth.Statement{Time: text, Exporter: bytes.Repeat([]byte{exporters}, auth.ExporterSize)}, now, uptime)
			}
			state := loginState{}
			if at := uint8(restarted); server == 0 && at < 2 {
				now, _ := moment(at)
				if err := accept(monitors[0], auth.ClientTime(now), at); err != nil {
					t.Fatal(err)
				}
				monitors[1] = start(file, at)
				state.boot, state.now, state.floor = 1, at, at+1
			}
			texts := make([][]byte, len(claimedTimes))
			for i, c := range claimedTimes {
				now, uptime := moment(c.at)
				switch {
				case c.by == byClock:
					texts[i] = auth.ClientTime(now)
				case c.by == byNetwork:
					texts[i] = auth.ServerTime(make([]byte, len(foreign[0].Offer(now, uptime))))
				case c.server == server:
					texts[i] = auth.ServerTime(monitors[c.boot].Offer(now, uptime))
				default:
					texts[i] = auth.ServerTime(foreign[c.boot].Offer(now, uptime))
				}
			}
			wantOneTextEach(t, texts)
			for ; state.now < 2; state.now++ {
				for i, c := range claimedTimes {
					if c.by == byMonitor && c.at > state.now {
						continue // nobody has it yet
					}
					err := accept(monitors[state.boot], texts[i], state.now)
					if want := (loginDesign{}).fresh(state, server, c); (err == nil) != want {
						t.Errorf("server %d, %+v, time %+v: %v, in the model %v", server, state, c, err, want)
					}
				}
			}
		}
	}
}

// wantOneTextEach checks that statements of different places, accounts, times and connections are different texts.
func wantOneTextEach(t *testing.T, times [][]byte) {
	t.Helper()
	texts := make(map[string]bool)
	for place := range byte(8) {
		for i, at := range times {
			s := auth.Statement{
				Host: auth.HostID{place & 1}, Account: []string{"ann", "bob"}[place>>1&1], Time: at,
				Exporter: bytes.Repeat([]byte{place >> 2}, auth.ExporterSize),
			}
			if texts[string(s.Bytes())] {
				t.Errorf("two statements have one text: %+v, time %+v", s, claimedTimes[i])
			}
			texts[string(s.Bytes())] = true
		}
	}
}

// wantFields checks that a struct has the fields of the model, so that who changes one changes the
// other.
func wantFields(t *testing.T, v any, want ...string) {
	t.Helper()
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(v)) {
		names = append(names, field.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%T has the fields %q, and the model %q", v, names, want)
	}
}

// A resumeDesign is what the proof of a Resume covers, and what holders know.
type resumeDesign struct {
	unnumbered bool // the proof does not cover the number
	forgets    bool // holders do not know used numbers
	shared     bool // all sessions have the same secret, and the proof does not name one
}

// A resumed is what a Resume says, or a proof covers. The secret is that of a session.
type resumed struct{ uid, session, n, secret uint8 }

// modelSessions are sessions by their ids: those of two accounts on the first server, and of one on the
// second.
var modelSessions = []clientRun{{0, 0}, {0, 1}, {1, 0}}

// A resumeState has proofs and accepted numbers as bits: session*2 + n.
type resumeState struct{ made, accepted, used uint8 }

// covered returns what the proof of a client covers.
func (d resumeDesign) covered(session, n uint8) resumed {
	p := resumed{modelSessions[session].account, session, n, session}
	if d.unnumbered {
		p.n = 0
	}
	if d.shared {
		p.session, p.secret, p.uid = 0, 0, 0
	}
	return p
}

func (d resumeDesign) next(s resumeState, f func(what move, next resumeState, broken ...string)) {
	for bit := range uint8(2 * len(modelSessions)) {
		session, n := bit/2, bit%2
		if s.made&(1<<bit) == 0 {
			next := s
			next.made |= 1 << bit
			f(move{"a client resumes session %d with number %d", [4]uint8{session, n}}, next)
			continue
		}
		// The attacker has this proof, and puts it into any Resume, at any server.
		for place := range uint8(2 * 2 * 4 * 2) {
			server, uid, id, number := place&1, place>>1&1, place>>2&3, place>>4
			if int(id) >= len(modelSessions) || modelSessions[id] != (clientRun{server, uid}) {
				continue // the server has no such session of that account
			}
			slot := uint8(1) << (id*2 + number)
			if d.covered(session, n) != d.covered(id, number) || s.used&slot != 0 {
				continue
			}
			var broken []string
			if id != session {
				broken = append(broken, "session")
			}
			if s.accepted&(1<<bit) != 0 {
				broken = append(broken, "once")
			}
			next := s
			next.accepted |= 1 << bit
			if !d.forgets {
				next.used |= slot
			}
			f(move{"session %d is resumed by the proof of session %d, number %d, as number %d", [4]uint8{id, session, n, number}}, next, broken...)
		}
	}
}

// A dishonest network process that passes Resumes on, of sessions whose secrets it has not seen, resumes
// no other session by them, nor one twice. With other designs, the search finds the attacks.
func TestAgreementOnResumes(t *testing.T) {
	wantFields(t, wire.Resume{}, "UID", "ID", "Instance", "Boot", "N", "Proof")
	for _, test := range []struct {
		why    string
		design resumeDesign
		want   []string
	}{
		{"as specified", resumeDesign{}, nil},
		{"numbers outside the proof", resumeDesign{unnumbered: true}, []string{"once"}},
		{"numbers forgotten", resumeDesign{forgets: true}, []string{"once"}},
		{"a secret of several sessions", resumeDesign{shared: true}, []string{"session", "once"}},
	} {
		attacks, states := search(resumeState{}, len(test.want), test.design.next)
		wantAttacks(t, test.why, attacks, states, test.want...)
	}
}
