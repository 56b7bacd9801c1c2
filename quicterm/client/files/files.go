// Package files moves files between this machine and servers, over side pipes: it opens the files of an account. It
// knows no way to a server and no command line.
package files

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/sftp"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/files"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// ownID is the first id of the requests of this package: pkg/sftp counts its own from 1 on.
	ownID = 1 << 31

	// packetBytes are the content of a request to read or write, near files.MaxPacket: what each costs beside its content, such
	// as the wakes of threads, is spent on fewer.
	packetBytes = 248 << 10

	// requestsPerFile bounds the blocks of packetBytes that are under way of a file, each by one request if it has no holes:
	// almost 8 MiB, as much as a session takes of input.
	requestsPerFile = 32

	// attachTime bounds the time in which a side pipe is opened again after it was broken off.
	attachTime = time.Minute
)

// Files are those of an account on a server, which [sftp.Client] opens. Relative paths start at the home directory, or
// where the server's settings say.
// They are safe for concurrent use.
type Files struct {
	*sftp.Client
	Host string // in front of paths in messages, such as "server:"

	out     *files.Writer
	end     func()        // ends the side pipe
	ended   chan struct{} // closed when err is known
	err     error         // why the side pipe has ended
	session *client.Session

	mu      sync.Mutex
	waiting map[uint32]chan []byte // for the answers to the requests of this package
	last    uint32

	reads atomic.Int32 // requests for names that were not used
}

// Open opens the files of the account that the client logs in to. The caller closes them.
func Open(ctx context.Context, c *client.Client) (*Files, error) {
	out, in := io.Pipe()
	req := &wire.Attach{Side: wire.SideFiles}
	attach := func() (*client.Session, error) { return c.Attach(ctx, req, client.Streams{Stdout: in}) }
	session, err := attach()
	for start := time.Now(); errors.As(err, new(*client.BrokenOffError)) && time.Since(start) < attachTime; {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
		session, err = attach()
	}
	if err != nil {
		return nil, err
	}
	f := &Files{
		out: files.NewWriter(session), ended: make(chan struct{}), session: session,
		waiting: make(map[uint32]chan []byte), last: ownID,
	}
	go func() {
		_, err := session.Run(context.WithoutCancel(ctx))
		if err == nil {
			err = errors.New("the server serves no files any more")
		}
		f.err = err
		close(f.ended)
		in.Close()
	}()
	f.end = func() {
		out.Close() // or the session would wait for a reader of what has come
		session.Part()
	}
	stop := context.AfterFunc(ctx, f.end)
	defer stop()
	answers := files.NewReader(out, func(_ byte, id uint32) bool { return id >= ownID }, f.take)
	f.Client, err = sftp.NewClientPipe(answers, pipe{f.out, f.end}, sftp.MaxPacketUnchecked(packetBytes),
		sftp.MaxConcurrentRequestsPerFile(requestsPerFile), sftp.UseConcurrentWrites(true))
	if err != nil {
		<-f.ended
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("no files: %w", f.err)
	}
	return f, nil
}

// OpenUntil is Open for files that are closed when the context ends: a request would wait for a network. The caller
// closes them, too, after stop, by which they outlive the context. It returns false if the context has ended.
func OpenUntil(ctx context.Context, c *client.Client) (f *Files, stop func() bool, err error) {
	if f, err = Open(ctx, c); err != nil {
		return nil, nil, err
	}
	return f, context.AfterFunc(ctx, func() { f.Close() }), nil
}

// A pipe has what the [sftp.Client] writes.
type pipe struct {
	io.Writer
	end func()
}

// Close implements [io.Closer].
func (p pipe) Close() error {
	p.end()
	return nil
}

// Close ends the side pipe, and all requests.
func (f *Files) Close() error {
	f.end() // the client would wait for a request that is being sent
	<-f.ended
	f.Client.Close()
	return nil
}

// take takes the answer to a request of this package. No goroutine waits for others.
func (f *Files) take(packet []byte) bool {
	id := binary.BigEndian.Uint32(packet[1:])
	f.mu.Lock()
	answer := f.waiting[id]
	delete(f.waiting, id)
	f.mu.Unlock()
	if answer != nil {
		answer <- packet
	}
	return true
}

// ask sends a request of this package, and returns its answer, of a type or a Status: the bytes behind type and id.
func (f *Files) ask(kind byte, request func(id uint32) []byte) ([]byte, error) {
	answer := make(chan []byte, 1)
	f.mu.Lock()
	f.last = max(f.last+1, ownID)
	id := f.last
	f.waiting[id] = answer
	f.mu.Unlock()
	if err := f.out.Send(request(id)); err != nil {
		return nil, &EndedError{f.lost()}
	}
	select {
	case packet := <-answer:
		if packet[0] == files.TypeStatus {
			return nil, files.ParseStatus(packet[5:])
		}
		if packet[0] != kind {
			return nil, fmt.Errorf("the server answers with a packet of type %d", packet[0])
		}
		return packet[5:], nil
	case <-f.ended:
		return nil, &EndedError{f.err}
	}
}

// home returns the tree of a directory, of which the path from the home directory on is given.
func (f *Files) home(dir string) (*remote, error) {
	var refused *files.Error
	home, err := f.ask(files.TypeReply, files.HomeOf)
	if errors.As(err, &refused) { // an older server: most start there
		var start string
		start, err = f.RealPath(".")
		home = []byte(start)
	}
	return &remote{f, path.Join(string(home), dir)}, f.reason(err)
}

// lost returns why the side pipe has ended, for whom a request has failed.
func (f *Files) lost() error {
	<-f.ended
	return f.err
}

// An EndedError says that the side pipe has ended, and so all requests.
type EndedError struct{ Err error }

func (e *EndedError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *EndedError) Unwrap() error { return e.Err }

// reason returns an error of a request in the words of the server's system, or why there is no server any more.
func (f *Files) reason(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	var ended *EndedError
	var own *files.Error
	var status *sftp.StatusError
	behind := func(text string) error { // the operation and the path
		if i := strings.LastIndex(text, ": "); i >= 0 {
			text = text[i+len(": "):]
		}
		return errors.New(wire.Printable(text, maxLine))
	}
	switch {
	case errors.As(err, &ended):
		return ended
	case errors.Is(err, sftp.ErrSSHFxConnectionLost):
		return &EndedError{f.lost()}
	case errors.As(err, &status):
		text := err.Error()
		if _, quoted, ok := strings.Cut(text, `sftp: "`); ok {
			text, _, _ = strings.Cut(quoted, `" (`)
		}
		return behind(text)
	case errors.As(err, &own):
		return behind(own.Error())
	}
	select {
	case <-f.ended:
		return &EndedError{f.err}
	default:
		return err
	}
}

// Put writes a file with a content of at most [files.MaxPut] bytes. It is there wholly or not at all, in place of
// what had its name, also of a link.
func (f *Files) Put(name string, a files.Attributes, content []byte) error {
	if len(content) > files.MaxPut {
		return fmt.Errorf("%d bytes are too many at once", len(content))
	}
	_, err := f.ask(files.TypeStatus, func(id uint32) []byte { return files.Put(id, name, a, content) })
	return f.reason(err)
}

const (
	// maxReads bounds the requests for the names of a directory that are under way: with the 128 names of a packet,
	// 20 000 take two round trips.
	maxReads = 80

	// maxAhead bounds those of all directories together, beyond one for each: their answers wait in memory, of at most
	// files.MaxPacket bytes each.
	maxAhead = 128
)

// readDir calls each with the files of a directory, in packets as they come. An error of each ends it.
func (f *Files) readDir(name string, each func([]fs.FileInfo) error) error {
	body, err := f.ask(files.TypeHandle, func(id uint32) []byte { return files.OnHandle(files.TypeOpenDir, id, name) })
	if err != nil {
		return err
	}
	handle, err := files.ParseHandle(body)
	if err != nil {
		return err
	}
	defer f.ask(files.TypeStatus, func(id uint32) []byte { return files.OnHandle(files.TypeClose, id, handle) })
	type answer struct {
		body []byte
		err  error
	}
	answers := make(chan chan answer, maxReads)
	read := func() {
		f.reads.Add(1)
		a := make(chan answer, 1)
		answers <- a
		go func() {
			body, err := f.ask(files.TypeNames, func(id uint32) []byte { return files.OnHandle(files.TypeReadDir, id, handle) })
			a <- answer{body, err}
		}()
	}
	window := 1 // doubles while there is more, as most directories are small
	var failed error
	for read(); len(answers) > 0; {
		a := <-<-answers
		f.reads.Add(-1)
		var infos []fs.FileInfo
		err := a.err
		if err == nil {
			infos, err = files.ParseNames(a.body)
		}
		if err == nil && failed == nil {
			err = each(infos)
		}
		if failed == nil {
			failed = err
		}
		window = min(2*window, maxReads)
		for failed == nil && len(answers) < window && (len(answers) == 0 || f.reads.Load() < maxAhead) {
			read()
		}
	}
	var status *files.Error
	if errors.As(failed, &status) && status.Code == files.StatusEOF {
		return nil
	}
	return failed
}

// hash returns the hash of a range of a file, of at most [files.MaxHash] bytes.
func (f *Files) hash(name string, offset, size uint64) (files.Hash, error) {
	answer, err := f.ask(files.TypeReply, func(id uint32) []byte { return files.HashOf(id, name, offset, size) })
	if err != nil {
		return files.Hash{}, err
	}
	return files.ParseHash(answer)
}
