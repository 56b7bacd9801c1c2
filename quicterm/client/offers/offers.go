// Package offers asks the person at the keyboard what a server wants of this machine: to save a file, which it does, or to
// use the ssh agent. Nothing that a server says becomes a path here: it names offers by numbers, and a file by one cleaned
// word.
package offers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/files"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxPending bounds the offers that wait for an answer. The oldest ones make room.
	maxPending = 16

	// maxAnswered bounds the offers that are known as answered, and maxUntold those of which the terminal has not told
	// the user. Those beyond that are offered again.
	maxAnswered, maxUntold = 256, 16

	// maxAsked bounds the questions of Ask that wait for an answer, and askTime how long one waits: time to come back to the
	// window, and less than most servers wait for a login.
	maxAsked = 4
	askTime  = time.Minute

	// partSuffix ends the name of a file that is not whole.
	partSuffix = ".part"

	// maxName bounds the name of a file in bytes, with a number and partSuffix.
	maxName = 240

	// maxNumber bounds the numbers of files with the same name.
	maxNumber = 1000
)

// Offers are those of one client. They are safe for concurrent use.
type Offers struct {
	Client *client.Client
	Host   string            // as the user named it
	Say    func(text string) // tells the user a line
	Key    string            // the keys that call Menu, for people

	mu       sync.Mutex
	pending  []wire.OfferFile
	asked    []*question
	shown    func(ctx context.Context, yes bool) (note string) // takes the answer to what Menu has shown last
	permits  []string                                          // the lines that permit it
	answered []uint64                                          // the last ones: a server offers until it knows the answer
	untold   []string
}

// A question is one of Ask.
type question struct {
	what   string
	answer chan bool // has room for one
}

// Add takes an offer. The same one may come more than once. It does not block.
func (f *Offers) Add(o wire.OfferFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.pending, func(p wire.OfferFile) bool { return p.ID == o.ID }) ||
		slices.Contains(f.answered, o.ID) ||
		!f.tellLocked("%s offers %s (%s): %s saves it", f.Host, clean(o.Name), terminal.Bytes(o.Size), f.Key) {
		return
	}
	if len(f.pending) == maxPending {
		f.pending = f.pending[1:]
	}
	f.pending = append(f.pending, o)
}

// Ask asks whether the server may do something, in words as "sign". It returns false if the user refuses it, does not answer
// within askTime, or has too many other questions, or when the context ends.
func (f *Offers) Ask(ctx context.Context, what string) bool {
	q := &question{what: what, answer: make(chan bool, 1)}
	f.mu.Lock()
	ask := len(f.asked) < maxAsked && f.tellLocked("%s asks to %s: %s answers", f.Host, what, f.Key)
	if ask {
		f.asked = append(f.asked, q)
	}
	f.mu.Unlock()
	if !ask {
		return false
	}
	late := time.NewTimer(askTime)
	defer late.Stop()
	select {
	case yes := <-q.answer:
		return yes
	case <-late.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.endLocked(q) && ctx.Err() == nil {
		f.tellLocked("refused, for want of an answer: %s", what)
	}
	return false
}

// endLocked ends a question, and reports whether it waited.
func (f *Offers) endLocked(q *question) bool {
	n := len(f.asked)
	f.asked = slices.DeleteFunc(f.asked, func(other *question) bool { return other == q })
	return len(f.asked) < n
}

// tellLocked has the user told, unless too much waits for that.
func (f *Offers) tellLocked(format string, args ...any) bool {
	if len(f.untold) == maxUntold {
		return false
	}
	f.untold = append(f.untold, fmt.Sprintf(format, args...))
	if len(f.untold) == 1 {
		go f.tell()
	}
	return true
}

// tell tells the user what is untold. It blocks while the terminal is stopped.
func (f *Offers) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.untold) > 0 {
		text := f.untold[0]
		f.mu.Unlock()
		f.Say(text)
		f.mu.Lock()
		f.untold = f.untold[1:]
	}
}

// Menu answers a line of the user: y saves the file that was shown last, and n refuses what was shown, whatever came since.
// A question of Ask takes its own number in place of y, so that nothing typed before it is shown allows it. More says that
// something is shown.
func (f *Offers) Menu(ctx context.Context, line string) (text string, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	note := ""
	if shown := f.shown; shown != nil {
		f.shown = nil
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case slices.Contains(f.permits, answer):
			note = shown(ctx, true) + "\n"
		case answer == "n" || answer == "no":
			note = shown(ctx, false) + "\n"
		}
	}
	switch {
	case len(f.asked) > 0:
		q := f.asked[0]
		f.shown = func(_ context.Context, yes bool) string { return f.answerLocked(q, yes) }
		number := strconv.Itoa(100 + rand.IntN(900))
		f.permits = []string{number}
		return fmt.Sprintf("%s%s asks to %s: %s allows it, n refuses it, Enter leaves", note, f.Host, q.what, number), true
	case len(f.pending) > 0:
		o := f.pending[0]
		f.shown = func(ctx context.Context, yes bool) string { return f.takeLocked(ctx, o, yes) }
		f.permits = []string{"y", "yes"}
		return fmt.Sprintf("%s%s offers %s (%s): save it to %s? y/n, Enter leaves", note, f.Host, clean(o.Name),
			terminal.Bytes(o.Size), folder()), true
	case note == "":
		note = "nothing is asked, and no file is offered: qtd get offers one, in the session"
	}
	return strings.TrimSpace(note), false
}

func (f *Offers) answerLocked(q *question, yes bool) (note string) {
	if !f.endLocked(q) {
		return "too late: " + q.what
	}
	q.answer <- yes
	if yes {
		return "allowed: " + q.what
	}
	return "refused: " + q.what
}

func (f *Offers) takeLocked(ctx context.Context, o wire.OfferFile, yes bool) (note string) {
	f.answeredLocked(o.ID)
	if yes {
		go f.save(ctx, o)
		return "saving " + clean(o.Name)
	}
	go f.refuse(ctx, o)
	return "refused " + clean(o.Name)
}

// answeredLocked keeps an offer from being made again.
func (f *Offers) answeredLocked(id uint64) {
	f.pending = slices.DeleteFunc(f.pending, func(p wire.OfferFile) bool { return p.ID == id })
	f.answered = append(f.answered, id)
	f.answered = f.answered[max(0, len(f.answered)-maxAnswered):]
}

func (f *Offers) refuse(ctx context.Context, o wire.OfferFile) {
	if opened, stop, err := files.OpenUntil(ctx, f.Client); err == nil {
		opened.RefuseOffer(o.ID)
		stop()
		opened.Close()
	}
}

func (f *Offers) save(ctx context.Context, o wire.OfferFile) {
	name, err := f.fetch(ctx, o)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		f.mu.Lock()
		f.answered = slices.DeleteFunc(f.answered, func(id uint64) bool { return id == o.ID }) // it may be offered still
		f.mu.Unlock()
		f.Say(fmt.Sprintf("%s is not saved: %s", clean(o.Name), wire.Printable(err.Error(), 1024)))
	default:
		f.Say("saved " + name)
	}
}

// fetch makes a new file, of a name that no file has.
func (f *Offers) fetch(ctx context.Context, o wire.OfferFile) (name string, err error) {
	opened, stop, err := files.OpenUntil(ctx, f.Client)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	defer stop()
	dir, err := os.OpenRoot(folder())
	if err != nil {
		return "", err
	}
	defer dir.Close()
	part, err := create(dir, clean(o.Name)+partSuffix)
	if err != nil {
		return "", err
	}
	err = opened.GetOffer(o.ID, int64(o.Size), part, func() (err error) {
		name, err = keep(dir, part, clean(o.Name))
		return err
	})
	if err != nil {
		part.Close()
		dir.Remove(filepath.Base(part.Name()))
		return "", err
	}
	return filepath.Join(dir.Name(), name), nil
}

// keep gives a file that is whole its name, with a number if there is one of the name, and returns that.
func keep(dir *os.Root, part *os.File, name string) (string, error) {
	if err := part.Close(); err != nil {
		return "", err
	}
	reserved, err := create(dir, name)
	if err != nil {
		return "", err
	}
	reserved.Close()
	name = filepath.Base(reserved.Name())
	if err = dir.Rename(filepath.Base(part.Name()), name); err != nil {
		dir.Remove(name)
	}
	return name, err
}

// create makes a new file, with a number if there is one of the name.
func create(dir *os.Root, name string) (*os.File, error) {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 1; n <= maxNumber; n++ {
		file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil || !errors.Is(err, os.ErrExist) {
			return file, err
		}
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	return nil, fmt.Errorf("there are %d files of this name", maxNumber)
}

// folder returns the folder for what is saved.
func folder() string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	if info, err := os.Stat(filepath.Join(home, "Downloads")); err == nil && info.IsDir() {
		return filepath.Join(home, "Downloads")
	}
	return home
}

// clean returns the name that a file gets: one word of a path that every system knows, which is neither hidden nor
// controls anything.
func clean(name string) string {
	name = wire.Printable(name[strings.LastIndexAny(name, `/\`)+1:], maxName)
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimLeft(name, ". "), ". ")
	for cut := maxName - len("-1000") - len(partSuffix); len(name) > cut; {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	switch {
	case name == "":
		return "file"
	case !filepath.IsLocal(name): // of a device of Windows
		return "_" + name
	}
	return name
}
