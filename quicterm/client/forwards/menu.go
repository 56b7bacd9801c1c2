package forwards

import (
	"context"
	"errors"
	"fmt"
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
	Kind     string `json:"kind"` // as its flag is called: L, R or D
	Listen   string `json:"listen"`
	Target   string `json:"target,omitzero"` // empty if each connection says where it goes
	Open     int    `json:"open"`            // connections
	Sent     uint64 `json:"sent_bytes"`      // to the server
	Received uint64 `json:"received_bytes"`
}

func (s Status) String() string {
	to := ""
	if s.Target != "" {
		to = " to " + s.Target
	}
	return fmt.Sprintf("-%s %s%s: open %d, sent %s, received %s", s.Kind, s.Listen, to, s.Open,
		terminal.Bytes(s.Sent), terminal.Bytes(s.Received))
}

// Status returns the forwards in the order of their numbers in the menu. Without forwards, it returns none.
func (f *Forwards) Status() (all []Status) {
	if f == nil {
		return nil
	}
	for _, e := range f.list.all() {
		s := Status{Kind: string(e.Kind), Listen: e.Listen.String(), Open: int(e.open.Load()),
			Sent: e.counts.Sent.Load(), Received: e.counts.Received.Load()}
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
	for i, s := range f.Status() {
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
	if number, err := strconv.Atoi(line); err == nil {
		entries := f.list.all()
		if number < 1 || number > len(entries) {
			return "", fmt.Errorf("there is no forward %d", number)
		}
		f.list.remove(entries[number-1])
		return "", nil
	}
	if len(line) < 3 || line[0] != '-' || !strings.ContainsRune("LRD", rune(line[1])) {
		return "", errors.New("write a forward as -L 8080:localhost:80, or the number of one")
	}
	spec, err := Parse(Kind(line[1]), strings.TrimSpace(line[2:]))
	if err != nil {
		return "", err
	}
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
