package program

import (
	"encoding/binary"
	"fmt"
	"strings"
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

// A waiting call takes a descriptor, a set of them or an epoll descriptor.
type waiting int

const (
	inRead waiting = iota + 1
	inPoll
	inSelect
	inEpoll
)

// waitingCalls are the system calls by their numbers.
var waitingCalls = map[string]map[uint64]waiting{
	"amd64": {
		0: inRead, 19: inRead, // readv
		7: inPoll, 271: inPoll, 219: inPoll, // ppoll; restart_syscall, which a poll that was stopped goes on as
		23: inSelect, 270: inSelect, // pselect6
		232: inEpoll, 281: inEpoll, 441: inEpoll, // epoll_wait, epoll_pwait, epoll_pwait2
	},
	"arm64": {63: inRead, 65: inRead, 73: inPoll, 72: inSelect, 22: inEpoll, 441: inEpoll},
}

// onTerminal reports whether a thread waits for input from the terminal, whatever else it waits for.
func (s *sleep) onTerminal(arch string) bool {
	var number, first, second uint64
	if n, _ := fmt.Sscanf(s.call, "%d 0x%x 0x%x", &number, &first, &second); n < 3 {
		return false // "running", or "-1" of a page fault
	}
	switch waitingCalls[arch][number] {
	case inRead:
		return s.terminal(first)
	case inPoll:
		return s.inPoll(first, second)
	case inSelect:
		return s.inSelect(first, second)
	case inEpoll:
		return s.inEpoll(first)
	}
	return false
}

func (s *sleep) inPoll(address, n uint64) bool {
	const readable = 0x1 | 0x40 // POLLIN, POLLRDNORM
	if n > maxDescriptors {     // or what was stopped is no poll
		return false
	}
	for polled := s.memory(address, 8*n); len(polled) >= 8; polled = polled[8:] {
		fd, events := int32(binary.LittleEndian.Uint32(polled)), binary.LittleEndian.Uint16(polled[4:])
		if fd >= 0 && events&readable != 0 && s.terminal(uint64(fd)) {
			return true
		}
	}
	return false
}

func (s *sleep) inSelect(n, address uint64) bool {
	n = min(n, maxDescriptors)
	set := s.memory(address, (n+7)/8)
	for fd := range min(n, 8*uint64(len(set))) {
		if set[fd/8]&(1<<(fd%8)) != 0 && s.terminal(fd) {
			return true
		}
	}
	return false
}

func (s *sleep) inEpoll(fd uint64) bool {
	const readable = 0x1 // EPOLLIN
	looked := 0
	for line := range strings.Lines(s.epoll(fd)) {
		var target, events uint64
		if n, _ := fmt.Sscanf(line, "tfd: %d events: %x", &target, &events); n < 2 {
			continue
		}
		if looked++; looked > maxDescriptors {
			return false
		}
		if events&readable != 0 && s.terminal(target) {
			return true
		}
	}
	return false
}
