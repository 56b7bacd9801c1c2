//go:build linux || darwin

package offering

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/files"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// answerTime is how long a person has to answer.
	answerTime = time.Minute

	// againTime is the time after which an offer is made again: the client may have been without a network.
	againTime = 5 * time.Second

	// awayTime is how long none of the clients that may save the file is there, before it counts as not saved.
	awayTime = 2 * time.Minute

	// saveTime bounds a save of a client that is there and does not say what has come of it.
	saveTime = 4 * time.Hour

	// lookTime is the time between two looks at what has come of the offer.
	lookTime = 200 * time.Millisecond
)

// offer offers a file, and returns when the client has saved it. It calls say when the client was told.
func offer(ctx context.Context, file string, say func()) error {
	path := os.Getenv(wire.SocketVariable)
	if path == "" {
		return errors.New("there is no session here: run it in one of qt connect")
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	opened, info, err := files.OpenRegular(absolute)
	if err != nil {
		return err
	}
	opened.Close()
	var random [8]byte
	rand.Read(random[:])
	o := &wire.OfferFile{
		ID: binary.BigEndian.Uint64(random[:]), Size: uint64(info.Size()), Name: filepath.Base(absolute),
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(home, files.OfferDir)
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = os.Chmod(dir, 0o700)
	}
	link := filepath.Join(dir, files.Offer(o.ID))
	if err == nil {
		err = os.Symlink(absolute, link)
	}
	if err != nil {
		return err
	}
	defer func() {
		for _, suffix := range []string{"", files.OfferSaving, files.OfferSaved, files.OfferFailed} {
			os.Remove(link + suffix)
		}
	}()
	s := session{ctx, path}
	if err := s.ask(o, new(wire.Done)); err != nil {
		return err
	}
	say()
	return await(ctx, link, func() { s.ask(o, new(wire.Done)) }, s.clients)
}

// A session is that of this process.
type session struct {
	ctx  context.Context
	path string // of its holder's socket
}

// ask asks the holder, and decodes its answer.
func (s session) ask(question, answer wire.Body) error {
	request, err := wire.New(question)
	if err != nil {
		return err
	}
	m, err := socket.Ask(s.ctx, s.path, uint32(os.Getuid()), &wire.Open{}, request)
	refusal := new(wire.Error)
	if err == nil && m.Decode(refusal) == nil {
		return refusal
	}
	if err != nil {
		return fmt.Errorf("the session does not answer: %w", err)
	}
	return m.Decode(answer)
}

// clients returns when the clients came that are connected, except those that only watch. Of a session that does not
// answer, there are none.
func (s session) clients() (since []int64) {
	state := new(wire.State)
	if s.ask(new(wire.Query), state) != nil {
		return nil
	}
	info, err := wire.DecodeInfo(state.Info)
	if err != nil {
		return nil
	}
	for _, m := range info.Members {
		if !m.Role.ReadOnly() {
			since = append(since, m.Since)
		}
	}
	return since
}

// await waits for the person and the client. It calls again while the person has not answered, and clients for those
// that are there.
func await(ctx context.Context, link string, again func(), clients func() []int64) error {
	there := func(suffix string) bool {
		_, err := os.Lstat(link + suffix)
		return err == nil
	}
	look := time.NewTicker(lookTime)
	defer look.Stop()
	began := time.Now()
	told := began
	var saves, asked, seen time.Time
	var savers []int64 // one of them saves it
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
		waits, saving := there(""), there(files.OfferSaving) // before what comes after them
		switch {
		case there(files.OfferSaved):
			return nil
		case there(files.OfferFailed):
			return errors.New("the client could not save it")
		case saving:
			if now := time.Now(); saves.IsZero() {
				savers, saves, asked, seen = clients(), now, now, now
			} else if now.Sub(asked) > againTime {
				asked = now
				if slices.ContainsFunc(clients(), func(c int64) bool { return slices.Contains(savers, c) }) {
					seen = now
				}
			}
			if time.Since(seen) > awayTime || time.Since(saves) > saveTime {
				return errors.New("the client left, or was away for long, while it saved it")
			}
		case !waits && !there(files.OfferSaving):
			if there(files.OfferSaved) {
				return nil
			}
			return errors.New("refused")
		case time.Since(began) > answerTime:
			return fmt.Errorf("no answer within %v", answerTime)
		case waits && time.Since(told) > againTime:
			told = time.Now()
			again() // the client may be away
		}
	}
}
