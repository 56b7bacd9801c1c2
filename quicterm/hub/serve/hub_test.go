package serve_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/hub/node"
	"github.com/quicterm/quicterm/quicterm/hub/serve"
)

// patience is how long a test waits for what must happen: a loaded machine is slow.
const patience = 2 * time.Minute

// A world is a hub with its list.
type world struct {
	t    testing.TB
	url  string
	list string
	log  *slog.Logger
}

// newWorld serves a hub with a list of lines until the test ends.
func newWorld(t testing.TB, lines ...string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, list: filepath.Join(dir, "list"), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	w.write(lines...)
	names := []string{"127.0.0.1"}
	config, leaf, err := serve.SelfMade(filepath.Join(dir, "key.pem"), names)
	if err != nil {
		t.Fatal(err)
	}
	h, err := serve.New(serve.Config{Names: names, TLS: config, List: w.list, Log: w.log})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := hub.Address{Host: "127.0.0.1", Port: fmt.Sprint(listener.Addr().(*net.TCPAddr).Port), Pin: hub.PinOf(leaf), Pinned: true}
	w.url = address.String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("the hub ended:", err)
		}
	})
	return w
}

// write writes the list as a whole.
func (w *world) write(lines ...string) {
	w.t.Helper()
	if err := os.WriteFile(w.list+".new", []byte("# a list\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(w.list+".new", w.list); err != nil {
		w.t.Fatal(err)
	}
}

// dial logs in by a key.
func (w *world) dial(k key) *node.Conn {
	w.t.Helper()
	c, err := w.tryDial(k)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) tryDial(k key) (*node.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := node.Dial(ctx, w.url, k.login(), w.log)
	if err == nil {
		w.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// serve lets a host serve, and returns what it accepts and how it ends. It returns when people can see it.
func (w *world) serve(c *node.Conn, name string) (accepted chan net.Conn, ended chan error) {
	accepted, ended = make(chan net.Conn, 1024), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ended <- c.Serve(ctx, hub.Entry{Name: name, Version: "v1"}, func(s net.Conn, _ hub.UserID) { accepted <- s })
	})
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return accepted, ended
}

// await waits until a person sees hosts of these names.
func (w *world) await(person *node.Conn, names string) []hub.Entry {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		entries, err := person.Hosts(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		var found []string
		for _, e := range entries {
			found = append(found, e.Name)
		}
		if strings.Join(found, " ") == names {
			return entries
		}
		if time.Now().After(end) {
			w.t.Fatalf("hosts %q, want %q", found, names)
		}
	}
}

// A key is one of a host or person.
type key struct{ ssh.Signer }

func newKey(t testing.TB) key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key{signer}
}

// line returns the line of the key in a list.
func (k key) line(who string) string {
	return who + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.PublicKey())))
}

func (k key) login() node.Login {
	return node.Login{Key: k.PublicKey(), Sign: func(_ context.Context, text []byte) (*ssh.Signature, error) {
		return k.Sign(rand.Reader, text)
	}}
}

// A pair is a hub with a host and a person on it.
type pair struct {
	*world
	host, person *node.Conn
	accepted     chan net.Conn
	ended        chan error
	hostKey, own key
}

func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{hostKey: newKey(t), own: newKey(t)}
	p.world = newWorld(t, p.hostKey.line("host box.example"), p.own.line("person anna"))
	p.host, p.person = p.dial(p.hostKey), p.dial(p.own)
	p.accepted, p.ended = p.serve(p.host, "box.example")
	p.await(p.person, "box.example")
	return p
}

// open opens a stream, and returns both ends.
func (p *pair) open() (near, far *half) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := p.person.DialHost(ctx, "box.example")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	select {
	case other := <-p.accepted:
		p.t.Cleanup(func() { other.Close() })
		return &half{c}, &half{other}
	case <-ctx.Done():
		p.t.Fatal("the host has no stream")
	}
	return nil, nil
}

// A half is an end of a stream that can be half closed.
type half struct{ net.Conn }

func (h *half) CloseWrite() error { return h.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Twenty megabytes go both ways at once. Each end closes what it sends, reads all, and closes.
func TestRelayedBytesAreExact(t *testing.T) {
	p := newPair(t)
	near, far := p.open()
	var both sync.WaitGroup
	for _, ends := range [][2]*half{{near, far}, {far, near}} {
		sent := make([]byte, 20<<20)
		rand.Read(sent)
		both.Go(func() {
			if _, err := ends[0].Write(sent); err != nil {
				t.Error("write:", err)
			}
			if err := ends[0].CloseWrite(); err != nil {
				t.Error("close the writing half:", err)
			}
		})
		both.Go(func() {
			got, err := io.ReadAll(ends[1])
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("got %d bytes, %v; want the %d that were sent", len(got), err, len(sent))
			}
		})
	}
	both.Wait()
	for _, end := range []*half{near, far} {
		if err := end.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What was written before Close arrives.
func TestRelayedBytesArriveBeforeClose(t *testing.T) {
	p := newPair(t)
	near, far := p.open()
	text := []byte(strings.Repeat("x", 50_000))
	near.Write(text)
	near.Close()
	if got, err := io.ReadAll(far); err != nil || !bytes.Equal(got, text) {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(text))
	}
	for { // who has closed reads nothing more
		far.SetWriteDeadline(time.Now().Add(patience))
		if _, err := far.Write([]byte("y")); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the end that has not closed never learns it")
			}
			break
		}
	}
}

// An end that has sent all still reads.
func TestRelayHalfClose(t *testing.T) {
	p := newPair(t)
	near, far := p.open()
	near.Write([]byte("question"))
	near.CloseWrite()
	if got, err := io.ReadAll(far); err != nil || string(got) != "question" {
		t.Fatalf("%q, %v", got, err)
	}
	far.Write([]byte("answer"))
	far.CloseWrite()
	if got, err := io.ReadAll(near); err != nil || string(got) != "answer" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := near.Write([]byte("more")); err == nil {
		t.Error("an end writes after CloseWrite")
	}
}

// A reader that does not read makes the writer wait, for about a window.
func TestRelayBoundsUnreadBytes(t *testing.T) {
	p := newPair(t)
	near, far := p.open()
	near.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)) // to write more than a window takes longer: it never ends
	sent, err := near.Write(make([]byte, 8*hub.MaxWindow))
	if !errors.Is(err, os.ErrDeadlineExceeded) || sent > hub.MaxWindow {
		t.Fatalf("%d bytes were written to a reader that does not read, %v; want %d at most", sent, err, hub.MaxWindow)
	}
	near.CloseWrite()
	if got, err := io.ReadAll(far); err != nil || len(got) != sent {
		t.Errorf("read %d, %v; want %d", len(got), err, sent)
	}
}

// A host that is away, unknown or not a host cannot be dialed.
func TestDialHostThatIsNotThere(t *testing.T) {
	host, own := newKey(t), newKey(t)
	w := newWorld(t, host.line("host box"), own.line("person anna"))
	person := w.dial(own)
	for _, name := range []string{"box", "nothing", "anna"} {
		if _, err := person.DialHost(t.Context(), name); !errors.Is(err, node.ErrNoHost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := person.DialHost(t.Context(), "*"); err == nil {
		t.Error("a name that is a pattern was dialed")
	}
	w.await(person, "")
}

// A host announces its own name alone.
func TestHostAnnouncesOnlyItself(t *testing.T) {
	one, two, own := newKey(t), newKey(t), newKey(t)
	w := newWorld(t, one.line("host one"), two.line("host two"), own.line("person anna"))
	c := w.dial(one)
	_, ended := w.serve(c, "two")
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "host two") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("a host announces the name of another one")
	}
	person := w.dial(own)
	w.await(person, "")
	if _, err := person.DialHost(t.Context(), "two"); !errors.Is(err, node.ErrNoHost) {
		t.Error(err)
	}
}

// A person with tags sees and dials the hosts that share one.
func TestPersonSeesHostsWithItsTags(t *testing.T) {
	web, db, some, all := newKey(t), newKey(t), newKey(t), newKey(t)
	w := newWorld(t, web.line("host web1,web,eu"), db.line("host db1,db,eu"), some.line("person sam,web,us"), all.line("person al"))
	w.serve(w.dial(web), "web1")
	w.serve(w.dial(db), "db1")
	al, sam := w.dial(all), w.dial(some)
	w.await(al, "db1 web1")
	entries := w.await(sam, "web1")
	if got := strings.Join(entries[0].Tags, " "); got != "eu web" || entries[0].Since.IsZero() || entries[0].Version != "v1" {
		t.Errorf("entry %+v", entries[0])
	}
	if _, err := sam.DialHost(t.Context(), "db1"); !errors.Is(err, node.ErrNoHost) {
		t.Errorf("a host without its tag: %v", err)
	}
	for person, host := range map[*node.Conn]string{sam: "web1", al: "db1"} {
		s, err := person.DialHost(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

// A key that leaves the list ends its login, and its streams; others stay.
func TestRemovedKeyEnds(t *testing.T) {
	p := newPair(t)
	near, _ := p.open()
	other := newKey(t)
	p.write(p.hostKey.line("host box.example"), other.line("person otto"))
	select {
	case <-p.person.Done():
	case <-time.After(patience):
		t.Fatal("a login stays whose key is not in the list any more")
	}
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Error("its stream stays")
	}
	if _, err := p.tryDial(p.own); err == nil || !strings.Contains(err.Error(), "does not let this key in") {
		t.Errorf("a key that is not in the list: %v", err)
	}
	p.await(p.dial(other), "box.example")
	if err := p.host.Err(); err != nil {
		t.Error("the host, which has stayed in the list:", err)
	}
}

// A list that is cut, in the middle of being written, or nonsense changes nothing.
func TestListThatIsBeingWrittenChangesNothing(t *testing.T) {
	p := newPair(t)
	whole, err := os.ReadFile(p.list)
	if err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string]string{
		"empty": "", "within a line": string(whole[:len(whole)-20]), "no lines": "# nothing\n", "nonsense": "person\n",
		"a pattern": strings.Replace(string(whole), "box.example", "*", 1),
	} {
		if err := os.WriteFile(p.list, []byte(content), 0o600); err != nil { // in place
			t.Fatal(err)
		}
		select { // the time in which the hub reads it; a slow machine makes the test weaker, and not fail
		case <-p.person.Done():
			t.Fatalf("%s: a login ends by a list that is none", what)
		case <-time.After(1500 * time.Millisecond):
		}
		p.await(p.person, "box.example")
	}
}

// A host that connects again takes its name over, and the connection before ends.
func TestHostThatReturnsTakesItsNameOver(t *testing.T) {
	p := newPair(t)
	again := p.dial(p.hostKey)
	select {
	case <-p.host.Done():
	case <-time.After(patience):
		t.Fatal("a host is connected twice")
	}
	p.accepted, _ = p.serve(again, "box.example")
	p.await(p.person, "box.example")
	near, far := p.open()
	near.Write([]byte("x"))
	if _, err := far.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// More streams than a person may have are refused; when one ends, another may begin.
func TestStreamsOfAPersonAreBounded(t *testing.T) {
	p := newPair(t)
	var streams []net.Conn
	for range hub.MaxStreams {
		near, _ := p.open()
		streams = append(streams, near)
	}
	if _, err := p.person.DialHost(t.Context(), "box.example"); err == nil {
		t.Fatal("a person has more streams than it may")
	}
	second := p.dial(p.own) // the host counts them as well
	if _, err := second.DialHost(t.Context(), "box.example"); err == nil {
		t.Fatal("a person has more streams by two connections than it may")
	}
	streams[0].Close()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := p.person.DialHost(t.Context(), "box.example"); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a stream that has ended is counted for ever")
		}
	}
}

// A stream of a connection that is closed ends, and so do its host's.
func TestStreamsEndWithTheirConnection(t *testing.T) {
	p := newPair(t)
	near, far := p.open()
	p.host.Close()
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("a stream outlives its connection")
	}
	p.person.Close()
	if _, err := near.Read(make([]byte, 1)); err == nil {
		t.Error("a stream outlives its connection")
	}
	if err := <-p.ended; err == nil {
		t.Error("Serve ended without an error")
	}
}

func BenchmarkRelay(b *testing.B) {
	p := newPair(b)
	near, far := p.open()
	block := make([]byte, 1<<20)
	b.Run("bytes", func(b *testing.B) {
		b.SetBytes(int64(len(block)))
		var reading sync.WaitGroup
		reading.Go(func() { io.CopyN(io.Discard, far, int64(b.N)*int64(len(block))) })
		for range b.N {
			if _, err := near.Write(block); err != nil {
				b.Fatal(err)
			}
		}
		reading.Wait()
	})
	b.Run("echo", func(b *testing.B) {
		go io.Copy(far, far)
		for range b.N {
			near.Write(block[:1])
			if _, err := io.ReadFull(near, block[:1]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
