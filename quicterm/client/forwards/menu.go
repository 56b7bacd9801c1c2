package forwards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Status says what a forward does.
type Status struct {
	Kind     string `json:"kind"`            // as its flag is called: L, R, D or A
	Listen   string `json:"listen,omitzero"` // empty of A
	Target   string `json:"target,omitzero"` // empty if each connection says where it goes
	Open     int    `json:"open"`            // connections, or flows of UDP
	Sent     uint64 `json:"sent_bytes"`      // to the server
	Received uint64 `json:"received_bytes"`
	Dropped  uint64 `json:"dropped,omitzero"` // datagrams for which there was no room

	// Of A, how many signatures the server has asked for, and when it has asked last.
	Signatures int       `json:"signatures,omitzero"`
	Signed     time.Time `json:"signed,omitzero"`
}

func (s Status) String() string {
	if s.Kind == string(Agent) {
		last := ""
		if s.Signatures > 0 {
			last = ", the last at " + s.Signed.Format(time.TimeOnly)
		}
		return fmt.Sprintf("-A %s: open %d, signatures %d%s", s.Target, s.Open, s.Signatures, last)
	}
	to := ""
	if s.Target != "" {
		to = " to " + s.Target
	}
	text := fmt.Sprintf("-%s %s%s: open %d, sent %s, received %s", s.Kind, s.Listen, to, s.Open,
		terminal.Bytes(s.Sent), terminal.Bytes(s.Received))
	if s.Dropped > 0 {
		text += fmt.Sprintf(", dropped %d", s.Dropped)
	}
	return text
}

// Status returns the forwards in the order of their numbers in the menu. Without forwards, it returns none.
func (f *Forwards) Status() (all []Status) {
	if f == nil {
		return nil
	}
	for _, e := range f.list.all() {
		s := Status{Kind: string(e.Kind), Open: int(e.open.Load()), Sent: e.counts.Sent.Load(), Received: e.counts.Received.Load()}
		switch {
		case e.Kind != Agent:
			s.Listen = e.Listen.String()
		case e.uses.count.Load() > 0:
			s.Signatures, s.Signed = int(e.uses.count.Load()), time.Unix(e.uses.last.Load(), 0)
		}
		if e.flows != nil {
			s.Dropped = e.flows.dropped.Load()
		}
		if e.Target != (Address{}) {
			s.Target = e.Target.String()
		}
		all = append(all, s)
	}
	return all
}

// Link returns how the side pipe is doing, if there is one.
func (f *Forwards) Link() client.Status {
	if !f.mu.TryLock() { // it is being opened
		return client.Status{}
	}
	defer f.mu.Unlock()
	if f.pipe == nil {
		return client.Status{}
	}
	st := f.pipe.attached.Status()
	st.Name = "" // there is no session that people know
	return st
}

// addTime bounds how long the menu waits for the server.
const addTime = 10 * time.Second

// Menu does what a line of the menu asks for: it adds a forward that is written as on the command line, or removes the
// one with a number. An empty line lists them. It returns what to show the user, and waits for the server.
func (f *Forwards) Menu(ctx context.Context, line string) string {
	ctx, cancel := context.WithTimeout(ctx, addTime)
	defer cancel()
	note, err := "", error(nil)
	if line = strings.TrimSpace(line); line != "" {
		note, err = f.do(ctx, line)
	}
	var b strings.Builder
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(&b, "the server does not answer")
	case err != nil:
		fmt.Fprintln(&b, err)
	case note != "":
		fmt.Fprintln(&b, note)
	}
	listed := f.Status()
	for _, port := range f.list.offers() {
		if int(port) > len(listed) { // a number of the list is never a port
			fmt.Fprintf(&b, "port %d is open on the server: %d forwards it\n", port, port)
		}
	}
	for i, s := range listed {
		fmt.Fprintf(&b, "%2d  %v\n", i+1, s)
	}
	b.WriteString("-L, -R or -D and addresses add a forward, a number removes one, Enter leaves")
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = wire.Printable(line, maxLine)
	}
	return strings.Join(lines, "\n")
}

func (f *Forwards) do(ctx context.Context, line string) (note string, err error) {
	if number, err := strconv.ParseUint(line, 10, 16); err == nil {
		switch entries := f.list.all(); {
		case 1 <= number && number <= uint64(len(entries)):
			f.remove(entries[number-1])
			return "", nil
		case slices.Contains(f.list.offers(), uint16(number)):
			spec, note := offered(uint16(number))
			if _, err := f.add(ctx, spec); err != nil {
				return "", err
			}
			return note, nil
		}
		return "", fmt.Errorf("there is no forward %d", number)
	}
	if len(line) < 3 || line[0] != '-' || !strings.ContainsRune("LRD", rune(line[1])) {
		return "", errors.New("write a forward as -L 8080:localhost:80, or the number of one")
	}
	spec, err := Parse(Kind(line[1]), strings.TrimSpace(line[2:]))
	if err != nil {
		return "", err
	}
	return f.add(ctx, spec)
}

// remove removes a forward, and ends the side pipe if nothing uses it then. It waits for neither.
func (f *Forwards) remove(e *entry) {
	listener := f.list.remove(e)
	f.work.Go(func() {
		if listener != nil {
			listener.Reset()
		}
		f.mu.Lock()
		p := f.pipe
		if p == nil || f.needed() || !p.session.Unused() {
			f.mu.Unlock()
			return
		}
		f.pipe = nil
		f.mu.Unlock()
		p.leave()
	})
}

// add adds a forward, and returns what there is to say about it.
func (f *Forwards) add(ctx context.Context, spec Spec) (note string, err error) {
	e := f.list.enter(spec)
	if spec.Kind != Remote {
		err = f.listen(e)
	} else if p, openErr := f.open(ctx); openErr != nil {
		err = e.error(errors.New(forward.Reason(openErr)))
	} else if note, err = f.listenAt(ctx, p, e); err == nil {
		f.keep(p)
	}
	if err != nil {
		f.list.remove(e)
	}
	return note, err
}
