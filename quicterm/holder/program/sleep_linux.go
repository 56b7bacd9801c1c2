package program

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
)

// A sleep is what a thread sleeps in, and how to look at what that names.
type sleep struct {
	call     string                                // as /proc/PID/syscall shows it
	memory   func(address uint64, n uint64) []byte // of the process, or nil
	epoll    func(fd uint64) string                // the fdinfo of a descriptor
	terminal func(fd uint64) bool                  // whether a descriptor is the terminal
}

// maxDescriptors bounds the descriptors of one call that are looked at: the terminal is among the first.
const maxDescriptors = 64

// A wait says how a thread waits for input from the terminal. The greater one is the surer.
type wait int

const (
	waitsNot     wait = iota
	waitsAtTimes      // it goes on by itself before selfTime has passed: a spinner may turn
	waitsForMore      // it waits for something else too
	waitsAlone
)

// selfTime is how long the terminal must be still before a program waits that may go on without input: longer than a
// second, as clocks tick.
const selfTime = 1500 * time.Millisecond

// A waiting call takes a descriptor, a set of them or an epoll descriptor, or none.
type waiting int

const (
	inRead waiting = iota + 1
	inPoll
	inSelect
	inEpoll
	inNothing
)

// A form is how a call is told how long it may wait.
type form int

const (
	forever  form = iota
	millis        // 32 bits, negative for ever
	timeval       // an address, 0 for ever
	timespec      // an address, 0 for ever
)

// A waitingCall is a system call, with the place among its arguments of the time that it may wait.
type waitingCall struct {
	waiting
	form
	at int
}

// waitingCalls are the system calls by their numbers.
var waitingCalls = map[string]map[uint64]waitingCall{
	"amd64": {
		0: {inRead, forever, 0}, 19: {inRead, forever, 0}, // readv
		7: {inPoll, millis, 2}, 271: {inPoll, timespec, 2}, // ppoll
		219: {inPoll, millis, 2},                                  // restart_syscall, which a poll that was stopped goes on as
		23:  {inSelect, timeval, 4}, 270: {inSelect, timespec, 4}, // pselect6
		232: {inEpoll, millis, 3}, 281: {inEpoll, millis, 3}, 441: {inEpoll, timespec, 3}, // epoll_wait, pwait, pwait2
		202: {inNothing, timespec, 3}, 128: {inNothing, timespec, 2}, // futex, rt_sigtimedwait
	},
	"arm64": {
		63: {inRead, forever, 0}, 65: {inRead, forever, 0}, 73: {inPoll, timespec, 2}, 72: {inSelect, timespec, 4},
		22: {inEpoll, millis, 3}, 441: {inEpoll, timespec, 3}, 98: {inNothing, timespec, 3}, 137: {inNothing, timespec, 2},
	},
}

// parse returns the system call, and whether it is known, with its arguments.
func (s *sleep) parse(arch string) (call waitingCall, args [5]uint64, ok bool) {
	var number uint64
	n, _ := fmt.Sscanf(s.call, "%d 0x%x 0x%x 0x%x 0x%x 0x%x", &number, &args[0], &args[1], &args[2], &args[3], &args[4])
	if n < 3 { // "running", or "-1" of a page fault
		return waitingCall{}, args, false
	}
	call, ok = waitingCalls[arch][number]
	return call, args, ok
}

// onTerminal returns how a thread waits for input from the terminal.
func (s *sleep) onTerminal(arch string) wait {
	call, args, ok := s.parse(arch)
	if !ok {
		return waitsNot
	}
	on, more := false, false
	switch call.waiting {
	case inRead:
		on = s.terminal(args[0])
	case inPoll:
		on, more = s.inPoll(args[0], args[1])
	case inSelect:
		on, more = s.inSelect(args[0], args[1])
	case inEpoll:
		on, more = s.inEpoll(args[0])
	}
	switch {
	case !on:
		return waitsNot
	case s.limit(call, args) < selfTime:
		return waitsAtTimes
	case more:
		return waitsForMore
	}
	return waitsAlone
}

// idle reports whether a thread waits for nothing but another thread or a signal, without end.
func (s *sleep) idle(arch string) bool {
	call, args, ok := s.parse(arch)
	return ok && call.waiting == inNothing && args[call.at] == 0
}

// limit returns how long a call may wait.
func (s *sleep) limit(call waitingCall, args [5]uint64) time.Duration {
	value, unit := args[call.at], time.Nanosecond
	switch call.form {
	case millis:
		if ms := int32(value); ms >= 0 {
			return time.Duration(ms) * time.Millisecond
		}
		return math.MaxInt64
	case forever:
		return math.MaxInt64
	case timeval:
		unit = time.Microsecond
	}
	if value == 0 {
		return math.MaxInt64
	}
	b := s.memory(value, 16)
	if len(b) < 16 {
		return 0
	}
	seconds := min(binary.LittleEndian.Uint64(b), math.MaxInt32)
	return time.Duration(seconds)*time.Second + time.Duration(int32(binary.LittleEndian.Uint64(b[8:])))*unit
}

// inPoll reports whether a poll is on the terminal, and on something else.
func (s *sleep) inPoll(address, n uint64) (on, more bool) {
	const readable = 0x1 | 0x40 // POLLIN, POLLRDNORM
	if n > maxDescriptors {     // or what was stopped is no poll
		return false, false
	}
	for polled := s.memory(address, 8*n); len(polled) >= 8; polled = polled[8:] {
		fd, events := int32(binary.LittleEndian.Uint32(polled)), binary.LittleEndian.Uint16(polled[4:])
		switch {
		case fd < 0:
		case events&readable != 0 && s.terminal(uint64(fd)):
			on = true
		default:
			more = true
		}
	}
	return on, more
}

func (s *sleep) inSelect(n, address uint64) (on, more bool) {
	n = min(n, maxDescriptors)
	set := s.memory(address, (n+7)/8)
	for fd := range min(n, 8*uint64(len(set))) {
		switch {
		case set[fd/8]&(1<<(fd%8)) == 0:
		case s.terminal(fd):
			on = true
		default:
			more = true
		}
	}
	return on, more
}

func (s *sleep) inEpoll(fd uint64) (on, more bool) {
	const readable = 0x1 // EPOLLIN
	looked := 0
	for line := range strings.Lines(s.epoll(fd)) {
		var target, events uint64
		if n, _ := fmt.Sscanf(line, "tfd: %d events: %x", &target, &events); n < 2 {
			continue
		}
		if looked++; looked > maxDescriptors {
			return on, true
		}
		if events&readable != 0 && s.terminal(target) {
			on = true
		} else {
			more = true
		}
	}
	return on, more
}
