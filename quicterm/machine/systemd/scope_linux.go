package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/godbus/dbus/v5"
)

// A Scopes puts processes into scopes of a service manager: control groups that end neither with
// the process that has started them nor with a login. Any goroutine may use it.
type Scopes struct {
	socket string // of the manager
	pid    func(int32) bool
}

// A Scope is what a process is put into.
type Scope struct {
	Unit        string // its name, which ends in .scope
	Slice       string // the unit above it, which ends in .slice
	Description string
}

// FindScopes returns the scopes that this process can make and that outlive a login: of the system's manager for
// root, and of its own manager for another account, if that lingers. It returns nil if there are none.
func FindScopes() *Scopes {
	uid := os.Geteuid()
	s := &Scopes{socket: systemSocket, pid: func(pid int32) bool { return pid == 1 }}
	if uid != 0 {
		if name := accountName(strconv.Itoa(uid)); name == "" || !lingers(name) {
			return nil
		}
		// A manager that cannot be seen would take our process ids for those of others.
		s = &Scopes{socket: userSocket(uid), pid: func(pid int32) bool { return pid > 1 }}
	}
	c, err := s.connect(context.Background(), nil)
	if err != nil {
		return nil
	}
	c.Close()
	return s
}

// Interfaces of systemd's manager, org.freedesktop.systemd1(5).
const (
	managerName      = "org.freedesktop.systemd1"
	managerPath      = "/org/freedesktop/systemd1"
	managerInterface = "org.freedesktop.systemd1.Manager"
)

const systemSocket = "/run/systemd/private"

func userSocket(uid int) string {
	return filepath.Join("/run/user", strconv.Itoa(uid), "systemd/private")
}

// A property is one of a unit, in the form that D-Bus has it.
type property struct {
	Name  string
	Value dbus.Variant
}

// auxiliary is a further unit of a call. There are none.
type auxiliary struct {
	Name       string
	Properties []property
}

// Move puts a process into a new scope and returns when it is there. A nil Scopes leaves it where it is.
func (s *Scopes) Move(ctx context.Context, pid int, scope Scope) error {
	if s == nil {
		return nil
	}
	properties := []property{
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})},
		{"Slice", dbus.MakeVariant(scope.Slice)},
		{"Description", dbus.MakeVariant(scope.Description)},
		// A shell ignores SIGTERM, and would delay the end of the machine.
		{"SendSIGHUP", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	// One process that the kernel ends for its memory must not end the session. Managers before
	// 253 never end a scope for that, and do not know the property.
	err := s.start(ctx, scope.Unit, append(properties[:len(properties):len(properties)],
		property{"OOMPolicy", dbus.MakeVariant("continue")}))
	var unknown dbus.Error
	if errors.As(err, &unknown) && unknown.Name == "org.freedesktop.DBus.Error.PropertyReadOnly" {
		err = s.start(ctx, scope.Unit, properties)
	}
	if err != nil {
		return fmt.Errorf("put process into %s: %w", scope.Unit, err)
	}
	return nil
}

// start starts a transient unit and waits until it has started.
func (s *Scopes) start(ctx context.Context, unit string, properties []property) error {
	started := &jobResult{unit: unit, result: make(chan string, 1)}
	c, err := s.connect(ctx, started)
	if err != nil {
		return err
	}
	defer c.Close()
	call := c.Object(managerName, managerPath).CallWithContext(ctx, managerInterface+".StartTransientUnit", 0,
		unit, "fail", properties, []auxiliary{})
	if call.Err != nil {
		return call.Err
	}
	var result string
	select {
	case result = <-started.result:
	case <-c.Context().Done(): // it ends with ctx too
		select {
		case result = <-started.result: // both
		default:
			return cmp.Or(ctx.Err(), errors.New("the service manager has closed the connection"))
		}
	}
	if result != "done" {
		return fmt.Errorf("the service manager's job ended as %q", result)
	}
	return nil
}

// A jobResult is how the job ends that starts a unit.
type jobResult struct {
	unit   string
	result chan string // holds one
}

// DeliverSignal implements [dbus.SignalHandler].
func (j *jobResult) DeliverSignal(iface, name string, signal *dbus.Signal) {
	var id uint32
	var job dbus.ObjectPath
	var unit, result string
	if iface != managerInterface || name != "JobRemoved" ||
		dbus.Store(signal.Body, &id, &job, &unit, &result) != nil || unit != j.unit {
		return
	}
	select {
	case j.result <- result:
	default:
	}
}

// connect connects to the manager, without a bus between. The manager sends all its signals on such a connection.
func (s *Scopes) connect(ctx context.Context, signals dbus.SignalHandler) (*dbus.Conn, error) {
	c, peer, err := dial(ctx, s.socket)
	if err != nil {
		return nil, err
	}
	if !s.pid(peer.Pid) || peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		c.Close()
		return nil, fmt.Errorf("%s belongs to process %d of user id %d: it is not our service manager",
			s.socket, peer.Pid, peer.Uid)
	}
	return authenticate(ctx, c, signals)
}
