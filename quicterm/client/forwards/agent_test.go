package forwards

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A recorder is an agent that keeps what extension it is asked for.
type recorder struct {
	agent.ExtendedAgent
	name     string
	contents []byte
}

func (r *recorder) Extension(name string, contents []byte) ([]byte, error) {
	r.name, r.contents = name, contents
	return nil, nil
}

// Before anything else, an agent is told that it is forwarded, in a form that it accepts.
func TestBind(t *testing.T) {
	o, err := newOffer()
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	r := &recorder{ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent)}
	go agent.ServeAgent(r, far)
	go near.Write(o.bind)
	answer := make([]byte, 5)
	if _, err := io.ReadFull(near, answer); err != nil || !bytes.Equal(answer, []byte{0, 0, 0, 1, 6}) {
		t.Fatalf("the agent answers %x, %v", answer, err)
	}
	near.Close()
	var bind struct { // PROTOCOL.agent of OpenSSH, 1
		Key, Session, Signature []byte
		Forwarded               bool
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(r.contents, &bind); err != nil || r.name != "session-bind@openssh.com" || !bind.Forwarded {
		t.Fatalf("%s: %+v, %v", r.name, bind, err)
	}
	key, err := ssh.ParsePublicKey(bind.Key)
	if err == nil {
		err = ssh.Unmarshal(bind.Signature, &signature)
	}
	if err == nil {
		err = key.Verify(bind.Session, &signature)
	}
	if err != nil || len(bind.Session) < 16 {
		t.Errorf("%x: %v", bind.Session, err)
	}
	if again, err := newOffer(); err != nil || again.id == o.id {
		t.Errorf("two clients have one id: %v", err)
	}
}

// The server is asked once to listen for an agent, also while another goroutine finds that it does not.
func TestOfferedOnce(t *testing.T) {
	var asked atomic.Int64
	f, p := serveForwards(t, func(r io.ReadCloser, w io.WriteCloser) {
		forward.Serve(t.Context(), r, w, permit.Rules{}, func(wire.AgentID) (net.Listener, error) {
			asked.Add(1)
			time.Sleep(10 * time.Millisecond) // for the others
			return net.Listen("unix", filepath.Join(t.TempDir(), "agent"))
		})
	})
	o, err := newOffer()
	if err != nil {
		t.Fatal(err)
	}
	e := f.list.enter(Spec{Kind: Agent, offer: o})
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if _, err := f.listenAt(t.Context(), p, e); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if n := asked.Load(); n != 1 || len(f.list.missing(p)) > 0 {
		t.Errorf("asked %d times, want 1; missing %d", n, len(f.list.missing(p)))
	}
}

// A sink takes all bytes.
type sink struct {
	net.Conn
	bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) { return s.Buffer.Write(b) }
func (s *sink) Read([]byte) (int, error)    { return 0, io.EOF }
func (s *sink) CloseWrite() error           { return nil }
func (s *sink) Close() error                { return nil }

// Signatures are counted, however the bytes of requests come, and none is too long.
func TestCountSignatures(t *testing.T) {
	var requests []byte
	for _, r := range []struct {
		number byte
		length int
	}{{11, 1}, {13, 1}, {27, 300}, {13, 1000}, {17, 256 << 10}, {13, 20}} {
		requests = binary.BigEndian.AppendUint32(requests, uint32(r.length))
		requests = append(append(requests, r.number), bytes.Repeat([]byte{13}, r.length-1)...)
	}
	for _, step := range []int{1, 3, 7, 4096, len(requests)} {
		s := new(sink)
		c := &agentConn{Conn: s, uses: new(uses)}
		for rest := requests; len(rest) > 0; {
			n := min(step, len(rest))
			if _, err := c.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if c.uses.count.Load() != 3 || !bytes.Equal(s.Bytes(), requests) {
			t.Errorf("in steps of %d: %d signatures, %d bytes of %d", step, c.uses.count.Load(), s.Len(), len(requests))
		}
	}
	for _, length := range []uint32{0, 256<<10 + 1, 1 << 31} {
		s := new(sink)
		c := &agentConn{Conn: s, uses: new(uses)}
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, length), 13)); err == nil || s.Len() > 0 || c.uses.count.Load() > 0 {
			t.Errorf("a request of %d bytes: %v", length, err)
		}
	}
}
