package privsep

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
)

// Between the two processes are frames on a unix socket of type stream:
//
//	length u32 | kind u8 | files u8 | zero u16 | call u64 | payload (length bytes)
//
// The payload is CBOR: the struct of the kind in messages.go, or a reply. Each end makes calls, with
// numbers of its own; a reply has the number of the call. Descriptors come with the first byte of
// their frame, and only from the monitor: what the other end sends is refused, or closed unseen.

const (
	// maxFrame is the size of the largest payload, in bytes: an Attach has the client's message and
	// what it says, each up to wire.MaxMessage.
	maxFrame = 1 << 20

	headerSize = 16

	// maxCalls is how many calls of the other end are answered at once, and maxBytes how many bytes
	// they have together, until their replies are sent; those above it fail.
	maxCalls, maxBytes = 4096, 64 << 20

	// maxFiles is how many descriptors a frame has.
	maxFiles = 2
)

// errChannel is the error of a call when the other process is gone.
var errChannel = errors.New("the other half of the daemon is gone")

// A handler answers a call of the other end, by a function that decodes it and returns the answer. It returns the body
// of the reply and the descriptors to send with it, which the channel closes then.
type handler func(call func() (any, error)) (answer any, send []int, err error)

// A channel is one end of the connection between the two processes.
type channel struct {
	socket *net.UnixConn
	handle handler
	table  atomic.Pointer[table] // of the calls of the other end
	trusts bool                  // descriptors of the other end are taken, and its answers are waited for

	sendTime time.Duration

	next  atomic.Uint64
	write sync.Mutex

	mu      sync.Mutex
	calls   map[uint64]chan called        // of this end
	cancels map[uint64]context.CancelFunc // of calls of the other end
	bytes   int                           // of those calls
	closed  bool
	work    sync.WaitGroup
}

// called is the reply to a call.
type called struct {
	reply reply
	files []*os.File
}

func newChannel(socket *net.UnixConn, trusts bool, handle handler) *channel {
	if !trusts {
		unixsock.RefuseDescriptors(socket)
	}
	c := &channel{
		socket: socket, handle: handle, trusts: trusts, sendTime: replyTime,
		calls: make(map[uint64]chan called), cancels: make(map[uint64]context.CancelFunc),
	}
	c.serve(nil)
	return c
}

// serve sets what the other end may call.
func (c *channel) serve(t table) { c.table.Store(&t) }

// run answers the other end until it is gone, or sends what is no frame, or close is called. It
// returns when all calls have been answered.
func (c *channel) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	err := c.read(ctx)
	cancel()
	c.close()
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, answered := range calls {
		close(answered)
	}
	c.work.Wait()
	return err
}

func (c *channel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.socket.Close()
}

func (c *channel) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *channel) read(ctx context.Context) error {
	r := &frameReader{socket: c.socket, trusts: c.trusts, ahead: bufio.NewReader(c.socket)}
	defer r.close()
	for {
		k, call, payload, files, err := r.frame()
		if err != nil {
			return err
		}
		err = c.take(ctx, k, call, payload, files)
		if err != nil {
			closeFiles(files)
		}
		if errors.Is(err, errTooMany) {
			c.reply(call, nil, nil, err)
		} else if err != nil {
			return err
		}
	}
}

// errTooMany is the error of a call above maxCalls or maxBytes.
var errTooMany = errors.New("too many calls at once")

// take takes a frame of the other end. On an error it does not own the files.
func (c *channel) take(ctx context.Context, k kind, call uint64, payload []byte, files []*os.File) error {
	table := *c.table.Load()
	answer := func(ctx context.Context) {
		answer, send, err := c.handle(func() (any, error) { return table.serve(ctx, k, payload, files) })
		c.reply(call, answer, send, err)
		for _, fd := range send {
			unix.Close(fd)
		}
	}
	if row := table.row(k); row != nil && row.quick {
		answer(ctx)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch k {
	case kindReply:
		answered := c.calls[call]
		delete(c.calls, call)
		var r reply
		if err := decode(payload, &r); err != nil {
			return fmt.Errorf("reply: %w", err)
		}
		if answered == nil { // the caller has gone
			closeFiles(files)
			return nil
		}
		answered <- called{r, files}
		return nil
	case kindCancel:
		if cancel := c.cancels[call]; cancel != nil {
			cancel()
		}
		return nil
	}
	if c.cancels[call] != nil {
		return errors.New("two calls have one number")
	}
	if len(c.cancels) >= maxCalls || c.bytes+len(payload) > maxBytes {
		return errTooMany
	}
	ctx, cancel := context.WithCancel(ctx)
	c.cancels[call] = cancel
	c.bytes += len(payload)
	c.work.Go(func() {
		answer(ctx)
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancels, call)
		c.bytes -= len(payload)
	})
	return nil
}

func (c *channel) reply(call uint64, answer any, send []int, err error) {
	r := replyOf(answer, err)
	if r.Failure != nil {
		send = nil
	}
	if err := c.send(kindReply, call, r, send); errors.Is(err, errTooLong) {
		c.send(kindReply, call, &reply{Failure: failureOf(err)}, nil)
	}
}

// errTooLong is the error of a frame that is longer than maxFrame.
var errTooLong = errors.New("the message is too long")

// send sends a frame with descriptors, which stay open. On any error but errTooLong the channel ends.
func (c *channel) send(k kind, call uint64, body any, files []int) error {
	payload, err := channelEncoding.Marshal(body)
	if err != nil {
		return err
	}
	if len(payload) > maxFrame {
		return errTooLong
	}
	b := make([]byte, headerSize, headerSize+len(payload))
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	b[4], b[5] = byte(k), byte(len(files))
	binary.BigEndian.PutUint64(b[8:], call)
	b = append(b, payload...)
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	deadline := time.Now().Add(c.sendTime)
	c.write.Lock()
	defer c.write.Unlock()
	if c.trusts {
		deadline = time.Now().Add(c.sendTime)
	}
	c.socket.SetWriteDeadline(deadline)
	n, _, err := c.socket.WriteMsgUnix(b, rights, nil)
	if err == nil && n < len(b) {
		_, err = c.socket.Write(b[n:])
	}
	if err != nil {
		c.close()
	}
	return err
}

// call asks the other end, and decodes its answer into answer, unless that is nil. It returns the files that come
// with it, which the caller closes. It blocks until the other end has answered or ctx ends. If the other end is
// trusted, it is told of that instead: then it answers soon, and what it has done by then counts.
func (c *channel) call(ctx context.Context, k kind, body, answer any, files ...int) ([]*os.File, error) {
	number := c.next.Add(1)
	answered := make(chan called, 1)
	c.mu.Lock()
	if c.calls == nil || c.closed {
		c.mu.Unlock()
		return nil, errChannel
	}
	c.calls[number] = answered
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, number)
	}()
	if err := c.send(k, number, body, files); err != nil {
		return nil, fmt.Errorf("%w: %w", errChannel, err)
	}
	var r called
	var ok bool
	select {
	case r, ok = <-answered:
	case <-ctx.Done():
		if !c.trusts {
			return nil, context.Cause(ctx)
		}
		c.send(kindCancel, number, nil, nil)
		r, ok = <-answered // which comes soon
	}
	if !ok {
		return nil, errChannel
	}
	if err := r.reply.read(answer); err != nil {
		closeFiles(r.files)
		return nil, err
	}
	if r.files != nil && len(r.files) == 0 {
		return nil, errNoFiles
	}
	return r.files, nil
}

// errNoFiles is the error of a call whose answer was decoded, without the descriptors that came with it.
var errNoFiles = errors.New("there are too many open files")
