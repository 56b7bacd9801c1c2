package program

import (
	"encoding/hex"
	"strings"
	"testing"
)

// What programs sleep in, as the kernel showed it, with what their calls point to. Descriptors 0 and 3 are the
// terminal.
func TestSleepOnTerminal(t *testing.T) {
	const (
		stdin = "0100000000000000" // a set of descriptors
		other = "2000000000000000"
		third = "0800000000000000"
	)
	for _, test := range []struct {
		why, arch, call string
		memory          string // at the address that the call names
		time            string // that the call may take
		epoll           string
		want            wait
	}{
		{why: "cat", arch: "amd64", call: "0 0x0 0x7f56d31bc000 0x20000 0x7f56d324fb60 0xffffffff 0x0", want: waitsAlone},
		{why: "cat of a pipe", arch: "amd64", call: "0 0x5 0x7f56d31bc000 0x20000 0x7f56d324fb60 0xffffffff 0x0"},
		{why: "read of the third descriptor", arch: "arm64", call: "63 0x3 0xffffdb3f8b17 0x1 0x0 0x0 0x0",
			want: waitsAlone},
		{why: "readv", arch: "amd64", call: "19 0x0 0x7ffd1c 0x2 0x0 0x0 0x0", want: waitsAlone},
		{why: "bash", arch: "amd64", call: "270 0x1 0x7fff499b8e80 0x0 0x0 0x0 0x7fff499b8db0",
			memory: stdin, want: waitsAlone},
		{why: "bash", arch: "arm64", call: "72 0x1 0xffffc8a9e3e8 0x0 0x0 0x0 0xffffc8a9e3d0",
			memory: stdin, want: waitsAlone},
		{why: "vim", arch: "amd64", call: "270 0x1 0x5624616f2600 0x5624616f2580 0x5624616f2500 0x7ffddd 0x0",
			memory: stdin, time: "0400000000000000" + "0000000000000000", want: waitsAlone},
		{why: "select of others", arch: "amd64", call: "23 0x6 0x7ffd 0x0 0x0 0x0 0x0", memory: other},
		{why: "select of more", arch: "amd64", call: "23 0x6 0x7ffd 0x0 0x0 0x0 0x0", memory: third, want: waitsAlone},
		{why: "select of nothing", arch: "amd64", call: "23 0x0 0x0 0x0 0x0 0x7ffd 0x0"},
		{why: "set that cannot be read", arch: "amd64", call: "23 0x6 0x7ffd 0x0 0x0 0x0 0x0"},
		{why: "descriptors beyond the set", arch: "amd64", call: "23 0x400 0x7ffd 0x0 0x0 0x0 0x0", memory: other},
		{why: "poll", arch: "amd64", call: "7 0x7ffd 0x2 0xffffffff 0x0 0x0 0x0",
			memory: "0500000001000000" + "0000000001000000", want: waitsForMore},
		{why: "poll after a stop", arch: "amd64", call: "219 0x7ffd 0x1 0xffffffff 0x0 0x0 0x0",
			memory: "0000000001000000", want: waitsAlone},
		{why: "ppoll", arch: "arm64", call: "73 0xffffc8 0x1 0x0 0x0 0x0 0x0",
			memory: "0300000043000000", want: waitsAlone},
		{why: "poll for writing", arch: "amd64", call: "7 0x7ffd 0x1 0xffffffff 0x0 0x0 0x0",
			memory: "0000000004000000"},
		{why: "poll of no descriptor", arch: "amd64", call: "7 0x7ffd 0x1 0xffffffff 0x0 0x0 0x0",
			memory: "ffffffff01000000"},
		{why: "poll cut short", arch: "amd64", call: "7 0x7ffd 0x2 0xffffffff 0x0 0x0 0x0",
			memory: "050000000100000000"},
		{why: "sleep after a stop", arch: "amd64", call: "219 0x7ffd 0x7ffd18 0x0 0x0 0x0 0x0",
			memory: "0000000001000000"},
		{why: "node", arch: "amd64", call: "281 0xd 0x7ffc 0x400 0xffffffff 0x0 0x8", want: waitsForMore,
			epoll: "pos:\t0\ntfd:       10 events:       19 data: a\ntfd:        0 events:       19 data: 0\n"},
		{why: "node that computes nothing and reads nothing", arch: "amd64",
			call: "281 0xd 0x7ffc 0x400 0xffffffff 0x0 0x8", epoll: "tfd:       10 events:       19 data: a\n"},
		{why: "epoll for writing", arch: "arm64", call: "22 0x4 0xffff 0x8 0xffffffff 0x0 0x8",
			epoll: "tfd:        0 events: 8000001c data: 0\n"},
		{why: "Go", arch: "arm64", call: "22 0x4 0xffff 0x8 0xffffffff 0x0 0x8",
			epoll: "tfd:        3 events: 8000201d data: 0\n", want: waitsAlone},
		{why: "node with a spinner", arch: "amd64", call: "281 0xd 0x7ffc 0x400 0x50 0x0 0x8", want: waitsAtTimes,
			epoll: "tfd:       10 events:       19 data: a\ntfd:        0 events:       19 data: 0\n"},
		{why: "a poll with a spinner", arch: "amd64", call: "7 0x7ffd 0x1 0x64 0x0 0x0 0x0",
			memory: "0000000001000000", want: waitsAtTimes},
		{why: "a poll that only looks", arch: "amd64", call: "7 0x7ffd 0x1 0x0 0x0 0x0 0x0",
			memory: "0000000001000000", want: waitsAtTimes},
		{why: "a ppoll with a clock", arch: "arm64", call: "73 0xffffc8 0x1 0xffffdd 0x0 0x0 0x0",
			memory: "0300000043000000", time: "0100000000000000" + "0000000000000000", want: waitsAtTimes},
		{why: "a select with a spinner", arch: "amd64", call: "23 0x1 0x7ffd 0x0 0x0 0x7fffdd 0x0",
			memory: stdin, time: "0000000000000000" + "a086010000000000", want: waitsAtTimes},
		{why: "a select for a while", arch: "amd64", call: "23 0x1 0x7ffd 0x0 0x0 0x7fffdd 0x0",
			memory: stdin, time: "0100000000000000" + "20a1070000000000", want: waitsAlone},
		{why: "a select with a time that cannot be read", arch: "amd64", call: "23 0x1 0x7ffd 0x0 0x0 0x7fffdd 0x0",
			memory: stdin, want: waitsAtTimes},
		{why: "sleep", arch: "amd64", call: "230 0x0 0x0 0x7fffe0ef62c0 0x7fffe0ef6300 0x0 0x0"},
		{why: "a shell that waits for its child", arch: "amd64",
			call: "61 0xffffffffffffffff 0x7ffd 0x0 0x0 0x0 0x0"},
		{why: "a server", arch: "amd64", call: "288 0x3 0x0 0x0 0x80000 0x0 0x0"},
		{why: "a program that computes", arch: "amd64", call: "running\n"},
		{why: "a page fault", arch: "amd64", call: "-1 0x7ffd 0x7f56\n"},
		{why: "nothing", arch: "amd64"},
		{why: "another machine", arch: "riscv64", call: "63 0x0 0x7f 0x1 0x0 0x0 0x0"},
	} {
		s := sleep{
			call: test.call + " 0x7ffd 0x7f56\n", // the stack and the code
			memory: func(address, n uint64) []byte {
				from := test.memory
				if address&0xff == 0xdd {
					from = test.time
				}
				b, err := hex.DecodeString(from)
				if err != nil {
					t.Fatal(err)
				}
				return b[:min(uint64(len(b)), n)]
			},
			epoll:    func(uint64) string { return test.epoll },
			terminal: func(fd uint64) bool { return fd == 0 || fd == 3 },
		}
		if got := s.onTerminal(test.arch); got != test.want {
			t.Errorf("%s on %s: %v, want %v", test.why, test.arch, got, test.want)
		}
	}
}

// A thread that goes on by itself may print.
func TestIdle(t *testing.T) {
	for _, test := range []struct {
		why, arch, call string
		want            bool
	}{
		{"a worker", "amd64", "202 0x7fb7 0x189 0x0 0x0 0x0 0xffffffff", true},
		{"a worker", "arm64", "98 0xffff 0x189 0x0 0x0 0x0 0xffffffff", true},
		{"a worker with a time", "amd64", "202 0x7fb7 0x189 0x0 0x7ffd 0x0 0xffffffff", false},
		{"vim's timers", "amd64", "128 0x7fb4c8684d40 0x7fb4c888ae90 0x0 0x8 0x0 0x7ffc", true},
		{"sleep", "amd64", "230 0x0 0x0 0x7fffe0ef62c0 0x7fffe0ef6300 0x0 0x0", false},
		{"a socket", "amd64", "281 0xd 0x7ffc 0x400 0xffffffff 0x0 0x8", false},
		{"work", "amd64", "running", false},
	} {
		s := sleep{call: test.call + " 0x7ffd 0x7f56\n"}
		if got := s.idle(test.arch); got != test.want {
			t.Errorf("%s on %s: %v", test.why, test.arch, got)
		}
	}
}

// However many descriptors a program waits for, few are looked at.
func TestSleepIsBounded(t *testing.T) {
	for why, call := range map[string]string{
		"poll": "7 0x1 0xffffffffffffffff 0x0", "select": "23 0xffffffffffffffff 0x1 0x0", "epoll": "232 0x5 0x1 0x1",
	} {
		looked, most := 0, uint64(0)
		s := sleep{
			call: call,
			memory: func(_, n uint64) []byte {
				most = max(most, n)
				return []byte(strings.Repeat("\xff", int(n)))
			},
			epoll:    func(uint64) string { return strings.Repeat("tfd: 9 events: 1\n", 10000) },
			terminal: func(uint64) bool { looked++; return false },
		}
		if s.onTerminal("amd64") != waitsNot || looked > maxDescriptors || most > 8*maxDescriptors {
			t.Errorf("%s: looked at %d descriptors, and read %d bytes", why, looked, most)
		}
	}
}
