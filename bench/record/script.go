//go:build linux

// Package record makes traces: it runs a program in a session, types a script as a person does,
// and records input, output and hints.
package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/bench/trace"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
)

// A Script says what to run, and what is typed.
type Script struct {
	Cols, Rows int
	Setup      []string // shell commands that prepare the home directory
	Run        string   // a shell command
	steps      []step
}

// A step is one of a script. Most are input.
type step struct {
	after  time.Duration  // since the step before
	input  string         // what is typed, at once
	writes bool           // it is a character that is expected to show
	cursor string         // the final of a cursor key: what is typed depends on the terminal's mode
	marker string         // is recorded
	resize [2]int         // columns and rows
	wait   *regexp.Regexp // until the screen shows it
}

// keys are those that have names. Cursor keys have only a final character.
var keys = map[string]string{
	"Enter": "\r", "Tab": "\t", "Esc": "\x1b", "Backspace": "\x7f", "Space": " ", "Delete": "\x1b[3~",
	"PageUp": "\x1b[5~", "PageDown": "\x1b[6~",
	"Up": "A", "Down": "B", "Right": "C", "Left": "D", "End": "F", "Home": "H",
}

const (
	heldRepeat  = 33 * time.Millisecond // keys of a key that is held
	heldDelay   = 400 * time.Millisecond
	typoChance  = 0.025
	pauseChance = 0.08 // before a word
)

// Parse reads a script. README.md of package bench has its format. Chance comes from a seed.
func Parse(r io.Reader, seed uint64) (*Script, error) {
	s := &Script{Cols: 80, Rows: 24}
	p := &typist{s, rand.New(rand.NewPCG(seed, 0))}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		if err := p.line(verb, rest); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if s.Run == "" {
		return nil, errors.New("the script runs nothing")
	}
	return s, lines.Err()
}

// A typist makes steps as a person types.
type typist struct {
	script *Script
	chance *rand.Rand
}

func (p *typist) line(verb, rest string) (err error) {
	s := p.script
	switch verb {
	case "size", "resize":
		cols, rows, ok := asciicast.ParseSize(rest)
		if !ok {
			return fmt.Errorf("%q is not a size", rest)
		}
		if verb == "size" {
			s.Cols, s.Rows = cols, rows
		} else {
			p.add(step{resize: [2]int{cols, rows}})
		}
	case "setup":
		s.Setup = append(s.Setup, rest)
	case "run":
		s.Run = rest
	case "wait":
		st := step{}
		st.wait, err = regexp.Compile("(?m)" + rest)
		p.add(st)
	case "pause":
		st := step{}
		st.after, err = time.ParseDuration(rest)
		p.add(st)
	case "type":
		p.text(rest, true)
	case "exact":
		p.text(rest, false)
	case "ime":
		for _, word := range strings.Fields(rest) {
			p.add(step{after: p.between(400, 1000), input: word})
		}
	case "paste":
		rest, err = strconv.Unquote(rest)
		if n, e := strconv.Atoi(strings.TrimPrefix(rest, "@")); e == nil && rest[0] == '@' {
			rest = strings.Repeat("words of a text that was copied elsewhere\r", 1+n/42)[:n]
		}
		p.add(step{after: time.Second, input: rest})
	case "secret":
		p.add(step{marker: trace.SecretBegins})
		p.text(rest, false)
		p.add(step{marker: trace.SecretEnds})
	case "press", "hold":
		return p.press(rest, verb == "hold")
	default:
		return fmt.Errorf("%q is not known", verb)
	}
	return err
}

func (p *typist) add(s step) { p.script.steps = append(p.script.steps, s) }

func (p *typist) between(low, high int) time.Duration {
	return time.Duration(low+p.chance.IntN(high-low)) * time.Millisecond
}

// text types 6 to 10 keys a second, with pauses before some words, and typos that are seen a
// little later.
func (p *typist) text(text string, typos bool) {
	for i, r := range text {
		after := p.between(100, 165)
		if i > 0 && text[i-1] == ' ' && p.chance.Float64() < pauseChance {
			after += p.between(200, 900)
		}
		if typos && r >= 'a' && r <= 'z' && p.chance.Float64() < typoChance {
			p.add(step{after: after, input: string('a' + (r-'a'+rune(1+p.chance.IntN(25)))%26), writes: true})
			more := text[i+utf8.RuneLen(r):]
			more = more[:min(len(more), p.chance.IntN(3))]
			for _, m := range more {
				p.add(step{after: p.between(100, 165), input: string(m), writes: true})
			}
			for n := range 1 + len(more) {
				wait := p.between(110, 180)
				if n == 0 {
					wait += p.between(150, 400)
				}
				p.add(step{after: wait, input: "\x7f"})
			}
			after = p.between(150, 300)
		}
		p.add(step{after: after, input: string(r), writes: typos})
	}
}

// press types keys by name, such as Enter, Ctrl-R, Alt-b, Left*5.
func (p *typist) press(names string, held bool) error {
	for _, name := range strings.Fields(names) {
		times := 1
		if base, count, ok := strings.Cut(name, "*"); ok {
			n, err := strconv.Atoi(count)
			if err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			name, times = base, n
		}
		st := step{input: keys[name]}
		switch {
		case len(st.input) == 1 && st.input[0] >= 'A' && st.input[0] <= 'H':
			st.cursor, st.input = st.input, ""
		case st.input != "":
		case strings.HasPrefix(name, "Ctrl-") && len(name) == len("Ctrl-")+1:
			st.input = string(rune(name[5] & 0x1f))
		case strings.HasPrefix(name, "Alt-") && len(name) > len("Alt-"):
			st.input = "\x1b" + name[4:]
		default:
			return fmt.Errorf("%q is not a key", name)
		}
		for n := range times {
			switch {
			case !held:
				st.after = p.between(120, 220)
			case n == 1:
				st.after = heldDelay
			default:
				st.after = heldRepeat
			}
			p.add(st)
		}
	}
	return nil
}
