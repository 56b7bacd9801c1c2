// Package terminfo finds, checks and writes anew the compiled descriptions of terminals that ncurses reads: an entry
// that travels from a client to a server, which does not know the client's terminal.
//
// [Decode] accepts what term(5) describes, with numbers of 16 or 32 bits and with the extended part, and nothing that
// leads outside of the entry. What [Entry.Encode] writes has each string once for each capability, in order, as tic(1)
// writes it, and nothing of the original besides names, numbers and strings. Capabilities are known by their place
// alone.
package terminfo

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxSize bounds a compiled entry, in bytes: MAX_ENTRY_SIZE of ncurses.
const MaxSize = 32 << 10

const (
	magic16 = 0o432  // numbers have 16 bits
	magic32 = 0o1036 // numbers have 32 bits

	// maxNames bounds the names of an entry together, and maxName each of them, in bytes: MAX_NAME_SIZE of ncurses, and
	// a name of a file that no system finds too long.
	maxNames = 512
	maxName  = 128

	// How many capabilities have a place in the format (term.h): others are in the extended part, with names.
	maxBools, maxNumbers, maxStrings = 44, 39, 414
)

// Values of a capability that has none, in place of a boolean, a number or an offset.
const (
	Absent    = -1
	Cancelled = -2 // it is not taken from another entry that this one uses
)

// A String is the value of a capability, if State is 0: Absent and Cancelled are the others.
type String struct {
	State int16
	Text  string // without a zero byte
}

// Capabilities are the values of capabilities, those without a value too if they have their place before others.
type Capabilities struct {
	Bools   []int8 // 0 or 1, or Absent or Cancelled
	Numbers []int32
	Strings []String
}

// An Entry describes a terminal.
type Entry struct {
	Names    []string // of the terminal; the last one of several is a description for people
	Standard Capabilities
	Extended Capabilities
	Labels   []string // names of the extended capabilities: of booleans, numbers, and strings
}

// Is reports whether the entry is that of a terminal with a name.
func (e *Entry) Is(name string) bool {
	return slices.Contains(e.Names[:max(len(e.Names)-1, 1)], name)
}

// The places of strings that name files of the machine that the entry is from. tset(1) prints and runs them.
var files = [...]int{51, 125, 138} // init_file, reset_file, init_prog

// Detach removes what is of use only on the machine that the entry is from.
func (e *Entry) Detach() {
	for _, i := range files {
		if i < len(e.Standard.Strings) {
			e.Standard.Strings[i] = String{State: Absent}
		}
	}
}

// ValidName reports whether a terminal can have a name, which is that of a file too.
func ValidName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '.' && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+._-", r))
	})
}

// validDescription reports whether an entry can have a description, which is printable ASCII.
func validDescription(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '|' })
}

// validLabel reports whether an extended capability can have a name, such that infocmp(1) can print it.
func validLabel(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(",=#@|\\", r)
	})
}

// checkNames returns why the entry cannot have its names, or nil.
func (e *Entry) checkNames() error {
	for i, name := range e.Names {
		described := i > 0 && i == len(e.Names)-1
		if described && !validDescription(name) || !described && !ValidName(name) {
			return fmt.Errorf("no terminal has the name %q", name)
		}
	}
	if n := len(strings.Join(e.Names, "|")) + 1; len(e.Names) == 0 || n > maxNames {
		return fmt.Errorf("names of %d bytes", n)
	}
	for _, label := range e.Labels {
		if !validLabel(label) {
			return fmt.Errorf("no capability has the name %q", label)
		}
	}
	return nil
}

// Decode reads a compiled entry. What it returns can be encoded.
func Decode(b []byte) (*Entry, error) {
	if len(b) > MaxSize {
		return nil, fmt.Errorf("terminfo entry of %d bytes, at most %d can be used", len(b), MaxSize)
	}
	e := new(Entry)
	d := decoder{b: b}
	err := d.decode(e)
	if err == nil {
		err = e.checkNames()
	}
	if err == nil {
		_, err = e.Encode() // strings that share bytes may be too long without that
	}
	if err != nil {
		return nil, fmt.Errorf("terminfo entry: %w", err)
	}
	return e, nil
}

var (
	errEnd    = errors.New("it ends too early")
	errValue  = errors.New("a capability has a value that the format does not have")
	errCount  = errors.New("it has more capabilities than the format")
	errOffset = errors.New("a string is not in the table")
	errMagic  = errors.New("it is not in the compiled format of term(5)")
)

// A decoder reads the parts of an entry, and zeros behind its end. The first error counts.
type decoder struct {
	b    []byte
	at   int // from the beginning of the entry
	wide bool
	err  error
}

func (d *decoder) fail(err error) { d.err = cmp.Or(d.err, err) }

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b)-d.at {
		d.fail(errEnd)
		n = 0
	}
	part := d.b[d.at : d.at+n]
	d.at += n
	return part
}

func (d *decoder) short() int {
	if b := d.take(2); len(b) == 2 {
		return int(int16(binary.LittleEndian.Uint16(b)))
	}
	return 0
}

// align skips a byte if there is an odd number of them before.
func (d *decoder) align() { d.take(d.at % 2) }

// counts reads how many there are of something, which a receiver takes memory for.
func (d *decoder) counts(counts ...*int) {
	for _, n := range counts {
		if *n = d.short(); *n < 0 || *n > len(d.b) {
			d.fail(errEnd)
			*n = 0
		}
	}
}

func (d *decoder) decode(e *Entry) error {
	switch d.short() {
	case magic16:
	case magic32:
		d.wide = true
	default:
		return errMagic
	}
	var names, bools, numbers, strs, size int
	d.counts(&names, &bools, &numbers, &strs, &size)
	if bools > maxBools || numbers > maxNumbers || strs > maxStrings {
		return errCount
	}
	all, ends := strings.CutSuffix(string(d.take(names)), "\x00")
	if !ends {
		return errEnd
	}
	e.Names = strings.Split(all, "|")
	d.values(&e.Standard, bools, numbers)
	offsets := d.offsets(strs)
	d.texts(&e.Standard, offsets, string(d.take(size)))
	if d.err != nil || len(d.b)-d.at-d.at%2 < 5*2 {
		return d.err
	}
	d.align()
	var items int // in the table, which follows from the rest
	d.counts(&bools, &numbers, &strs, &items, &size)
	d.values(&e.Extended, bools, numbers)
	offsets = d.offsets(strs)
	labels := d.offsets(bools + numbers + strs)
	table := string(d.take(size))
	base := d.texts(&e.Extended, offsets, table)
	for _, offset := range labels {
		label, ok := text(table, base+offset)
		if offset < 0 || !ok {
			return errOffset
		}
		e.Labels = append(e.Labels, label)
	}
	return d.err
}

// values reads the booleans and the numbers.
func (d *decoder) values(c *Capabilities, bools, numbers int) {
	for _, v := range d.take(bools) {
		if int8(v) < Cancelled || int8(v) > 1 {
			d.fail(errValue)
		}
		c.Bools = append(c.Bools, int8(v))
	}
	d.align()
	for range numbers {
		v := int32(0)
		if !d.wide {
			v = int32(d.short())
		} else if b := d.take(4); len(b) == 4 {
			v = int32(binary.LittleEndian.Uint32(b))
		}
		if v < Cancelled {
			d.fail(errValue)
		}
		c.Numbers = append(c.Numbers, v)
	}
}

func (d *decoder) offsets(n int) []int {
	var offsets []int
	for range n {
		offsets = append(offsets, d.short())
	}
	return offsets
}

// texts looks up the strings, and returns how many bytes of the table they take.
func (d *decoder) texts(c *Capabilities, offsets []int, table string) (size int) {
	for _, offset := range offsets {
		s, ok := String{State: int16(offset)}, offset == Absent || offset == Cancelled
		if !ok {
			s.State = 0
			s.Text, ok = text(table, offset)
			size += len(s.Text) + 1
		}
		if !ok {
			d.fail(errOffset)
		}
		c.Strings = append(c.Strings, s)
	}
	return size
}

// text returns the string at an offset of a table.
func text(table string, offset int) (s string, ok bool) {
	if offset < 0 || offset >= len(table) {
		return "", false
	}
	s, _, ok = strings.Cut(table[offset:], "\x00")
	return s, ok
}

// Encode returns the compiled entry, or why it cannot be written.
func (e *Entry) Encode() ([]byte, error) {
	names := strings.Join(e.Names, "|") + "\x00"
	w := writer{b: binary.LittleEndian.AppendUint16(nil, magic16)}
	if w.wide = wide(e.Standard.Numbers) || wide(e.Extended.Numbers); w.wide {
		w.b = binary.LittleEndian.AppendUint16(nil, magic32)
	}
	s, x := &e.Standard, &e.Extended
	var table, extended, labels table
	table.addAll(s.Strings)
	w.shorts(len(names), len(s.Bools), len(s.Numbers), len(s.Strings), len(table.text))
	w.b = append(w.b, names...)
	w.capabilities(s, table)
	w.b = append(w.b, table.text...)
	if len(e.Labels) > 0 {
		extended.addAll(x.Strings)
		for _, label := range e.Labels {
			labels.add(String{Text: label})
		}
		w.align()
		items, size := extended.items+labels.items, len(extended.text)+len(labels.text)
		w.shorts(len(x.Bools), len(x.Numbers), len(x.Strings), items, size)
		w.capabilities(x, extended)
		w.shorts(labels.offsets...)
		w.b = append(append(w.b, extended.text...), labels.text...)
	}
	if len(w.b) > MaxSize || table.full || extended.full || labels.full {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxSize)
	}
	return w.b, nil
}

// wide reports whether numbers need 32 bits.
func wide(numbers []int32) bool {
	return slices.ContainsFunc(numbers, func(v int32) bool { return v > math.MaxInt16 })
}

// A table has strings one after the other.
type table struct {
	text    []byte
	offsets []int
	items   int  // strings that have a value
	full    bool // not all fit
}

func (t *table) addAll(all []String) {
	for _, s := range all {
		t.add(s)
	}
}

func (t *table) add(s String) {
	if s.State != 0 {
		t.offsets = append(t.offsets, int(s.State))
		return
	}
	if len(t.text)+len(s.Text) >= MaxSize {
		t.full = true
		return
	}
	t.offsets = append(t.offsets, len(t.text))
	t.text = append(append(t.text, s.Text...), 0)
	t.items++
}

type writer struct {
	b    []byte
	wide bool
}

func (w *writer) align() {
	if len(w.b)%2 != 0 {
		w.b = append(w.b, 0)
	}
}

func (w *writer) shorts(values ...int) {
	for _, v := range values {
		w.b = binary.LittleEndian.AppendUint16(w.b, uint16(v))
	}
}

func (w *writer) capabilities(c *Capabilities, t table) {
	for _, v := range c.Bools {
		w.b = append(w.b, byte(v))
	}
	w.align()
	for _, v := range c.Numbers {
		if w.wide {
			w.b = binary.LittleEndian.AppendUint32(w.b, uint32(v))
		} else {
			w.shorts(int(v))
		}
	}
	w.shorts(t.offsets...)
}
