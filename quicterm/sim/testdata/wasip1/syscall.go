// Package syscall of Linux has these names, and that of wasip1 lacks them. No such call works.

package syscall

import "sync"

const (
	IPV6_MTU_DISCOVER = 0x17
	IPV6_PMTUDISC_DO  = 2
	IP_MTU_DISCOVER   = 0xa
	IP_PMTUDISC_DO    = 2
	LOCK_EX           = 2
	LOCK_NB           = 4
	LOCK_SH           = 1
	O_NOCTTY          = 0
	O_NONBLOCK        = 0
	EWOULDBLOCK       = EAGAIN
	RUSAGE_SELF       = 0
	WNOHANG           = 1
)

type Credential struct {
	Uid, Gid    uint32
	Groups      []uint32
	NoSetGroups bool
}

type NetlinkMessage struct {
	Header struct {
		Len         uint32
		Type, Flags uint16
		Seq, Pid    uint32
	}
	Data []byte
}

type NetlinkRouteAttr struct {
	Attr  struct{ Len, Type uint16 }
	Value []byte
}

var ForkLock sync.RWMutex

func AllThreadsSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	return 0, 0, ENOSYS
}

func Exec(string, []string, []string) error                             { return ENOSYS }
func Faccessat(int, string, uint32, int) error                          { return ENOSYS }
func Flock(int, int) error                                              { return nil } // the program is alone
func Getrusage(int, *Rusage) error                                      { return ENOSYS }
func NetlinkRIB(int, int) ([]byte, error)                               { return nil, ENOSYS }
func ParseNetlinkMessage([]byte) ([]NetlinkMessage, error)              { return nil, ENOSYS }
func ParseNetlinkRouteAttr(*NetlinkMessage) ([]NetlinkRouteAttr, error) { return nil, ENOSYS }
func Setgid(int) error                                                  { return ENOSYS }
func Setgroups([]int) error                                             { return ENOSYS }
func Setregid(int, int) error                                           { return ENOSYS }
func Setresgid(int, int, int) error                                     { return ENOSYS }
func Setresuid(int, int, int) error                                     { return ENOSYS }
func Setreuid(int, int) error                                           { return ENOSYS }
func Setrlimit(int, *Rlimit) error                                      { return ENOSYS }
func Setuid(int) error                                                  { return ENOSYS }

type SysProcAttr struct {
	Setsid, Setctty bool
	Ctty            int
	Credential      *Credential
	Cloneflags      uintptr
}

type SocketControlMessage struct{}

const MSG_CTRUNC = 8

func ParseSocketControlMessage([]byte) ([]SocketControlMessage, error) { return nil, ENOSYS }
func ParseUnixRights(*SocketControlMessage) ([]int, error)             { return nil, ENOSYS }
func UnixRights(...int) []byte                                         { return nil }
