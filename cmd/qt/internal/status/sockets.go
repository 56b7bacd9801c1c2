//go:build (linux && !android) || darwin

package status

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

// Each client listens on a unix socket of its own in the directory of its account. To each
// connection of that account it sends its report, and closes it. The socket's name has the process
// and the session, for a client that is stopped and sends nothing:
//
//	client-PID-RANDOM-SESSION.sock

const (
	clientPrefix = "client-"
	clientSuffix = ".sock" // while it listens

	// maxReport bounds the length of a report in bytes. A path takes about 300.
	maxReport = 64 << 10

	// askTimeout bounds the time for an answer. A client answers at once unless it is
	// stopped, or its machine is busy.
	askTimeout = client.StatusTimeout
)

// Serve answers processes of our account with the report of this client, one at a
// time, until stop is called. Stop waits for the last answer.
func Serve(session string, status func() *Report) (stop func(), err error) {
	return serveIn("", session, status)
}

func serveIn(base rundir.Base, session string, status func() *Report) (stop func(), err error) {
	uid := uint32(os.Geteuid())
	dir, err := base.Make()
	if err != nil {
		return nil, err
	}
	// The socket gets its name when it listens: Ask removes others.
	path := filepath.Join(dir, fmt.Sprintf("%s%d-%s-%s", clientPrefix, os.Getpid(), rand.Text()[:8], session))
	l, err := rundir.Listen(path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Rename(path, path+clientSuffix); err != nil {
		l.Close()
		os.Remove(path)
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(askTimeout / 5) // maybe no descriptor is free
				continue
			}
			answer(c, uid, status)
		}
	})
	return func() {
		os.Remove(path + clientSuffix)
		l.Close()
		wg.Wait()
	}, nil
}

// answer sends a report to the other end if that belongs to the account.
func answer(c *net.UnixConn, uid uint32, status func() *Report) {
	defer c.Close()
	if peer, err := rundir.PeerUID(c); err != nil || peer != uid {
		return
	}
	b, err := json.Marshal(status())
	if err != nil {
		return
	}
	// A report that does not fit the socket's buffer must be read now.
	c.SetDeadline(time.Now().Add(askTimeout / 2))
	c.Write(b)
}

// Ask returns the reports of all clients of our account.
func Ask() ([]*Report, error) { return askIn("") }

func askIn(base rundir.Base) ([]*Report, error) {
	uid := uint32(os.Geteuid())
	var paths []string
	for _, dir := range base.Dirs(uid) {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if name := f.Name(); strings.HasPrefix(name, clientPrefix) && strings.HasSuffix(name, clientSuffix) {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	answers := make([]*Report, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			r, err := askOne(path, uid)
			switch {
			case errors.Is(err, syscall.ECONNREFUSED):
				os.Remove(path) // the client was killed
			case errors.Is(err, os.ErrNotExist), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
				// the client has just ended
			case err != nil:
				answers[i] = silentReport(path)
			default:
				answers[i] = r
			}
		})
	}
	wg.Wait()
	answers = slices.DeleteFunc(answers, func(r *Report) bool { return r == nil })
	slices.SortFunc(answers, func(a, b *Report) int { return a.PID - b.PID })
	return answers, nil
}

func askOne(path string, uid uint32) (*Report, error) {
	c, err := rundir.Dial(path, uid)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if r := silentReport(path); r.State == stateStopped {
		return r, nil
	}
	c.SetDeadline(time.Now().Add(askTimeout))
	r := new(Report)
	if err := json.NewDecoder(io.LimitReader(c, maxReport)).Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// silentReport returns what the name of a client's socket tells of a client that does not answer.
func silentReport(path string) *Report {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), clientPrefix), clientSuffix)
	r := &Report{State: stateSilent, Paths: []Path{}}
	if parts := strings.SplitN(name, "-", 3); len(parts) == 3 {
		r.PID, _ = strconv.Atoi(parts[0])
		r.Session = parts[2]
	}
	if stopped(r.PID) {
		r.State = stateStopped
	}
	return r
}

// stopped reports whether a process is stopped by a signal, where /proc tells that.
func stopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") ")) // behind the name of the program
	return bytes.HasPrefix(state, []byte("T"))
}
