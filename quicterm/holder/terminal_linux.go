package holder

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TCGETS, unix.TCSETS

// processName returns the name that the kernel shows of a process.
func processName(pid int) ([]byte, error) {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return bytes.TrimSuffix(name, []byte("\n")), err
}

// terminalNumber returns n of the terminal /dev/pts/n.
func terminalNumber(master int) (uint32, error) { return unix.IoctlGetUint32(master, unix.TIOCGPTN) }
