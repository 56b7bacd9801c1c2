package systemd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// A process is moved when the manager's job is done, and not if the job fails, the manager goes or
// says nothing. Managers that do not know a property are asked without it.
func TestMove(t *testing.T) {
	removed := func(unit, result string) []any { return []any{uint32(1), dbus.ObjectPath("/job/1"), unit, result} }
	for _, c := range []struct {
		why     string
		manager fakeManager
		want    string
	}{
		{"done", fakeManager{removed: removed("a.scope", "done")}, ""},
		{"an old manager", fakeManager{old: true, removed: removed("a.scope", "done")}, ""},
		{"a job that fails", fakeManager{removed: removed("a.scope", "failed")}, `put process into a.scope: the service manager's job ended as "failed"`},
		{"refused", fakeManager{refuses: "org.freedesktop.systemd1.UnitExists"}, "put process into a.scope: no"},
		{"another unit's job", fakeManager{removed: removed("b.scope", "done")}, "put process into a.scope: the service manager has closed the connection"},
		{"a signal of another form", fakeManager{removed: []any{"a.scope"}}, "put process into a.scope: the service manager has closed the connection"},
	} {
		s := c.manager.start(t)
		err := s.Move(t.Context(), 77, Scope{Unit: "a.scope", Slice: "b.slice"})
		if got := errorText(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	silent := fakeManager{silent: cancel}
	s := silent.start(t)
	if err := s.Move(ctx, 77, Scope{Unit: "a.scope"}); err == nil {
		t.Error("a manager that says nothing has moved a process")
	}
	s.pid = func(int32) bool { return false }
	if err := s.Move(t.Context(), 77, Scope{Unit: "a.scope"}); err == nil || !strings.Contains(err.Error(), "not our service manager") {
		t.Errorf("a socket of another process: %v", err)
	}
	if err := (*Scopes)(nil).Move(t.Context(), 77, Scope{}); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A fakeManager answers the call of one scope, in D-Bus, and closes the connection.
type fakeManager struct {
	old     bool   // knows no OOMPolicy of scopes
	refuses string // name of an error
	silent  func() // called when it is asked, which it does not answer; or nil
	removed []any  // body of the signal JobRemoved
}

// start returns scopes of the manager.
func (m *fakeManager) start(t *testing.T) *Scopes {
	dir, err := os.MkdirTemp("", "qt") // short, for a socket's address
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/private")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
		os.RemoveAll(dir)
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if err := m.serve(c); err != nil {
				t.Error(err)
			}
			c.Close()
		}
	}()
	return &Scopes{socket: dir + "/private", pid: func(pid int32) bool { return int(pid) == os.Getpid() }}
}

func (m *fakeManager) serve(c net.Conn) error {
	c.SetDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(c)
	for line := ""; line != "BEGIN"; { // the handshake
		text, err := r.ReadString('\n')
		if err != nil {
			return nil // the test was of the socket only
		}
		switch line = strings.Trim(text, "\x00\r\n"); {
		case line == "AUTH":
			c.Write([]byte("REJECTED EXTERNAL\r\n"))
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			c.Write([]byte("OK 0123456789abcdef0123456789abcdef\r\n"))
		case line == "NEGOTIATE_UNIX_FD":
			c.Write([]byte("AGREE_UNIX_FD\r\n"))
		}
	}
	call, err := dbus.DecodeMessage(r)
	if err != nil {
		return err
	}
	if m.silent != nil {
		m.silent()
		r.ReadByte() // until the caller gives up
		return nil
	}
	var unit, mode string
	var properties []property
	var more []auxiliary
	if err := dbus.Store(call.Body, &unit, &mode, &properties, &more); err != nil {
		return err
	}
	values := make(map[string]any)
	for _, p := range properties {
		values[p.Name] = p.Value.Value()
	}
	pids, _ := values["PIDs"].([]uint32)
	if call.Headers[dbus.FieldMember].Value() != "StartTransientUnit" || unit != "a.scope" || mode != "fail" ||
		len(pids) != 1 || pids[0] != 77 || values["Slice"] != "b.slice" ||
		values["SendSIGHUP"] != true {
		return errors.New("the manager is asked for something else")
	}
	refuses := m.refuses
	if _, ok := values["OOMPolicy"]; ok && m.old {
		refuses = "org.freedesktop.DBus.Error.PropertyReadOnly"
	}
	answer := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{}}
	answer.Body = []any{dbus.ObjectPath("/job/1")}
	if refuses != "" {
		answer.Type = dbus.TypeError
		answer.Headers[dbus.FieldErrorName] = dbus.MakeVariant(refuses)
		answer.Body = []any{"no"}
	}
	answer.Headers[dbus.FieldReplySerial] = dbus.MakeVariant(call.Serial())
	if err := send(c, answer); err != nil || refuses != "" {
		return err
	}
	return send(c, &dbus.Message{Type: dbus.TypeSignal, Body: m.removed, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath(managerPath)),
		dbus.FieldInterface: dbus.MakeVariant(managerInterface),
		dbus.FieldMember:    dbus.MakeVariant("JobRemoved"),
	}})
}

// send sends a message with its signature and a serial number, which the package keeps for its own.
func send(c net.Conn, m *dbus.Message) error {
	m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(m.Body...))
	var b bytes.Buffer
	if err := m.EncodeTo(&b, binary.LittleEndian); err != nil {
		return err
	}
	const serial = 8 // offset in a message
	b.Bytes()[serial] = 1
	_, err := c.Write(b.Bytes())
	return err
}
