package forwards

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/quicterm/forward"
)

// signMessage returns a request for a signature, without its length.
func signMessage(key ssh.PublicKey, data []byte) []byte {
	return ssh.Marshal(struct {
		Key   []byte `sshtype:"13"`
		Data  []byte
		Flags uint32
	}{Key: key.Marshal(), Data: data})
}

func loginData(user string, number byte) []byte { return loginBy("publickey", user, number, nil) }

func loginBy(method, user string, number byte, host []byte) []byte {
	return ssh.Marshal(struct {
		Session               []byte
		Number                byte
		User, Service, Method string
		Signs                 bool
		Algorithm             string
		Key, Host             []byte
	}{make([]byte, 32), number, user, "ssh-connection", method, true, ssh.KeyAlgoED25519, nil, host})
}

// What a server asks for is told in words that control nothing, and whatever bytes come, nothing worse happens.
func TestDescribe(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	with := " with ssh-ed25519 " + ssh.FingerprintSHA256(key)
	file := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash string }{"git", "", "sha512"})...)
	for _, c := range []struct {
		data []byte
		want string
	}{
		{loginData("git", 50), `log in as "git"`},
		{loginBy(hostBound, "git", 50, key.Marshal()), `log in as "git" at the host of ` + ssh.FingerprintSHA256(key)},
		{loginBy(hostBound, "git", 50, []byte("none")), `log in as "git"`},
		{loginData("git\" with x", 50), `log in as "git\" with x"`},
		{loginData("a\x1b[2J\u202eb\nc", 50), `log in as "a?[2J?b c"`},
		{loginData(strings.Repeat("x", 1000), 50), `log in as "` + strings.Repeat("x", maxWord) + `"`},
		{loginData("git", 54), "sign"},
		{file, `sign for "git"`},
		{[]byte("SSHSIG"), "sign"},
		{nil, "sign"},
	} {
		request := signMessage(key, c.data)
		if got, blob, err := describe(request); got != c.want+with || string(blob) != string(key.Marshal()) || err != nil {
			t.Errorf("%q: %q, %v; want %q", c.data, got, err, c.want+with)
		}
		for n := 1; n < len(request); n++ {
			if got, _, err := describe(request[:n]); err == nil {
				t.Errorf("the first %d bytes of %q: %q", n, c.data, got)
			}
		}
	}
	if got, _, err := describe(signMessage(unknownKey{key}, nil)); err == nil {
		t.Errorf("of a key that is none: %q", got)
	}
}

type unknownKey struct{ ssh.PublicKey }

func (unknownKey) Marshal() []byte { return []byte("none") }

// A guarded is an agent with one key, to which guards connect.
type guarded struct {
	t       *testing.T
	f       *Forwards
	e       *entry
	keys    agent.Agent
	private ed25519.PrivateKey
	key     ssh.PublicKey

	asked              chan string
	answers, withdrawn chan bool
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &guarded{
		t: t, f: new(Forwards), keys: agent.NewKeyring(), private: private,
		asked: make(chan string, 1), answers: make(chan bool, 1), withdrawn: make(chan bool, 1),
	}
	if a.key, err = ssh.NewPublicKey(public); err != nil {
		t.Fatal(err)
	}
	if err := a.keys.Add(agent.AddedKey{PrivateKey: private, Comment: "my\x1b key"}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	go forward.Accept(l, func(c forward.Conn) {
		go func() {
			defer c.Close()
			agent.ServeAgent(a.keys, c)
		}()
	})
	o, err := newOffer()
	if err != nil {
		t.Fatal(err)
	}
	a.e = &entry{Spec: Spec{Kind: Agent, Target: Address{Path: l.Addr().String()}, offer: o}}
	a.f.life, a.f.stop = context.WithCancel(context.Background())
	t.Cleanup(func() {
		a.f.stop()
		a.f.work.Wait()
		l.Close()
	})
	return a
}

func (a *guarded) connect() *guard {
	a.t.Helper()
	c, err := net.Dial("unix", a.e.Target.Path)
	if err != nil {
		a.t.Fatal(err)
	}
	g := newGuard(a.f, a.e, &agentConn{Conn: c.(forward.Conn), uses: &a.e.uses})
	a.t.Cleanup(func() { g.Close() })
	return g
}

// ask takes a question: its words are in asked, and it waits for one of answers, or says in withdrawn that it has ended.
func (a *guarded) ask(ctx context.Context, what string) bool {
	a.asked <- what
	select {
	case yes := <-a.answers:
		return yes
	case <-ctx.Done():
		a.withdrawn <- true
		return false
	}
}

// The user is asked for a signature, not for a list, and the agent gets nothing else.
func TestGuard(t *testing.T) {
	a := newGuarded(t)
	program := agent.NewClient(a.connect())
	if _, err := program.Sign(a.key, []byte("early")); err == nil {
		t.Error("it signs before the user can be asked")
	}
	a.f.ConfirmBy(a.ask)
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	a.answers <- true
	if _, err := program.Sign(other, nil); err == nil || len(a.asked) > 0 {
		t.Fatalf("with a key that the agent does not have: %v, asked %d times", err, len(a.asked))
	}
	<-a.answers
	want := `log in as "git" with ssh-ed25519 ` + ssh.FingerprintSHA256(a.key) + " (my? key)"
	data := loginData("git", 50)
	for _, yes := range []bool{false, true, false} {
		a.answers <- yes
		signature, err := program.Sign(a.key, data)
		if got := <-a.asked; got != want {
			t.Errorf("it asks to %q, want %q", got, want)
		}
		if (err == nil) != yes || yes && a.key.Verify(data, signature) != nil {
			t.Errorf("after %v: %v", yes, err)
		}
		if listed, err := program.List(); err != nil || len(listed) != 1 {
			t.Errorf("after %v, it has %d keys, %v", yes, len(listed), err)
		}
	}
	for what, err := range map[string]error{
		"takes a key": program.Add(agent.AddedKey{PrivateKey: a.private}), "loses its keys": program.RemoveAll(), "is locked": program.Lock([]byte("x")),
	} {
		if err == nil {
			t.Errorf("the agent %s", what)
		}
	}
	if _, err := program.Extension("other@example.org", nil); err == nil {
		t.Error("the agent gets an extension")
	}
	if listed, err := a.keys.List(); err != nil || len(listed) != 1 {
		t.Errorf("at the end it has %d keys, %v", len(listed), err)
	}
	if n := a.e.uses.count.Load(); n != 1 || len(a.asked) > 0 {
		t.Errorf("%d signatures are counted, want 1; asked was %d times more", n, len(a.asked))
	}
}

// A question ends with the program that asks, however that ends, and so does the connection to the agent.
func TestGuardEnds(t *testing.T) {
	a := newGuarded(t)
	a.f.ConfirmBy(a.ask)
	for why, end := range map[string]func(*forward.Stream){
		"ended": func(far *forward.Stream) { far.CloseWrite() },
		"reset": func(far *forward.Stream) { far.Reset() },
		"sent more": func(far *forward.Stream) {
			far.Write(make([]byte, maxGuarded+1))
			far.Reset()
		},
	} {
		far, joined := a.join(a.connect())
		signed := make(chan error, 1)
		go func() {
			_, err := agent.NewClient(far).Sign(a.key, nil)
			signed <- err
		}()
		<-a.asked
		end(far)
		for what, ended := range map[string]<-chan bool{"the question": a.withdrawn, "the connection": joined} {
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: %s stays", why, what)
			}
		}
		if err := <-signed; err == nil {
			t.Errorf("%s: it signs", why)
		}
	}
}

// A request that is too long ends the connection to the agent, guarded or not.
func TestTooLong(t *testing.T) {
	a := newGuarded(t)
	for what, c := range map[string]struct {
		forward.Conn
		length uint32
	}{"guarded": {a.connect(), maxGuarded}, "not guarded": {a.connect().agentConn, 256<<10 + 1}} {
		far, joined := a.join(c.Conn)
		far.Write(append(binary.BigEndian.AppendUint32(nil, c.length), signRequest))
		if n, err := far.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%s: it answers %d bytes, %v", what, n, err)
		}
		select {
		case <-joined:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the connection stays", what)
		}
	}
}

// join joins a connection with a stream, of which it returns the other end, and reports when both have ended.
func (a *guarded) join(c forward.Conn) (far *forward.Stream, joined <-chan bool) {
	a.t.Helper()
	near, there := net.Pipe()
	client, err := forward.NewSession(near, near, true)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(client.Close)
	server, err := forward.NewSession(there, there, false)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(server.Close)
	s, err := client.Open(a.t.Context())
	if err == nil {
		far, err = server.Accept()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	done := make(chan bool, 1)
	go func() {
		forward.Join(s, c, new(forward.Counts), nil)
		done <- true
	}()
	return far, done
}
