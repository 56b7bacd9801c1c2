package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of texts for people, in bytes. Decoding cuts longer ones.
const (
	MaxClient = 255  // account@address; a Sizing has one byte for the length
	maxText   = 1024 // of an error: a few lines on a terminal
)

// Printable returns text of a peer for a terminal or a log: one line of at most limit
// bytes, in which nothing controls the terminal or changes the order of what is shown. White
// space becomes a space, and any other character that cannot be printed a question mark:
// control characters (C0, DEL, C1), format characters such as those for the direction of
// writing, and invalid UTF-8. It allocates nothing for text that needs no change.
//
// The decoders of this package apply it to each text that people see, so that nobody else
// has to.
func Printable(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?' // also of invalid UTF-8
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return '?'
	}, s)
}

// A message with texts that people see makes them printable when it is decoded.

func (h *Hello) makePrintable()    { h.Software = Printable(h.Software, MaxSummary) }
func (a *Attach) makePrintable()   { a.Machine = Printable(a.Machine, MaxMachine) }
func (a *Attached) makePrintable() { a.Name = Printable(a.Name, MaxName) }
func (e *End) makePrintable()      { e.Reason = Printable(e.Reason, MaxSummary) }
func (a *Ask) makePrintable()      { a.Reported = Printable(a.Reported, MaxSummary) }

func (e *Error) makePrintable() {
	e.Text = Printable(e.Text, maxText)
	if e.Lost != nil {
		e.Lost.makePrintable()
	}
}

func (o *Open) makePrintable() {
	o.Client = Printable(o.Client, MaxClient)
	o.Proof, o.Reported = Printable(o.Proof, MaxSummary), Printable(o.Reported, MaxSummary)
}

func (r *Resumed) makePrintable() {
	r.Proof, r.Reported = Printable(r.Proof, MaxSummary), Printable(r.Reported, MaxSummary)
}

func (d *Description) makePrintable() {
	d.Software, d.Client = Printable(d.Software, MaxSummary), Printable(d.Client, MaxClient)
	d.Proof = Printable(d.Proof, MaxSummary)
}

func (r *Report) makePrintable() {
	r.Software, r.Reason = Printable(r.Software, MaxSummary), Printable(r.Reason, MaxSummary)
	r.Name = Printable(r.Name, MaxName)
}

func (i *Info) makePrintable() {
	i.Name, i.Command = Printable(i.Name, MaxName), Printable(i.Command, MaxSummary)
	for n, member := range i.Members {
		i.Members[n].Client = Printable(member.Client, MaxClient)
	}
}
