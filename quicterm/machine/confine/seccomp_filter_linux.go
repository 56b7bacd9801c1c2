//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (seccomp(2)), of machines that store the lower half of a word first.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16 // the lower half of the first one; each has 8 bytes
)

// Answers of the filter.
const (
	answerAllow  = 0x7fff0000                      // SECCOMP_RET_ALLOW
	answerRefuse = 0x00050000 | uint32(unix.EPERM) // SECCOMP_RET_ERRNO
	answerAbsent = 0x00050000 | uint32(unix.ENOSYS)
)

func program(rules []rule) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: answerRefuse},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	for _, r := range rules {
		body := r.program()
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(r.call), SkipTrue: 1}, bpf.Jump{Skip: uint32(len(body))})
		p = append(p, body...)
	}
	return append(p, bpf.RetConstant{Val: answerRefuse})
}

// program returns what answers the call of a rule.
func (r *rule) program() (p []bpf.Instruction) {
	switch {
	case r.absent:
		return []bpf.Instruction{bpf.RetConstant{Val: answerAbsent}}
	case r.uses == nil:
		return []bpf.Instruction{bpf.RetConstant{Val: answerAllow}}
	}
	const length = 3 // instructions of a match
	for _, u := range r.uses {
		for i, m := range u {
			p = append(p,
				bpf.LoadAbsolute{Off: uint32(offsetArgument + 8*m.argument), Size: 4},
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: m.mask},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: m.value, SkipTrue: uint8(length*(len(u)-1-i) + 1)}, // to the next use
			)
		}
		p = append(p, bpf.RetConstant{Val: answerAllow})
	}
	return append(p, bpf.RetConstant{Val: answerRefuse})
}

// seccomp sets the filter for all threads, and no_new_privs with it, which this thread has.
func seccomp() error {
	raw, err := bpf.Assemble(program(policy()))
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("seccomp: thread %d has another filter", thread)
	}
	return nil
}
