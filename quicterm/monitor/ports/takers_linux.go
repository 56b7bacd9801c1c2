package ports

import (
	"bufio"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxTakers bounds the sockets that are returned: an account can take the port of any number of addresses.
const maxTakers = 16

// Takers returns sockets at a port of a protocol, at most maxTakers, from the system's table of sockets: see
// proc_net_udp and proc_net_tcp in the kernel's documentation. Of TCP they are those that listen.
func Takers(protocol string, port uint16) (found []Taker) {
	for _, table := range []string{"/proc/self/net/" + protocol, "/proc/self/net/" + protocol + "6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan() && len(found) < maxTakers; {
			t, state, ok := parseSocketLine(lines.Text())
			t.protocol = protocol
			if ok && t.address.Port() == port && (protocol == "udp" || state == listening) {
				found = append(found, t)
			}
		}
		f.Close()
	}
	return found
}

// listening is the state of a TCP socket that listens, as the table has it.
const listening = "0A"

// parseSocketLine parses a line of the table. It has the local address in the second field, as hexadecimal words in
// the machine's byte order, the state in the fourth, and the user id and the inode in the eighth and the tenth.
func parseSocketLine(line string) (t Taker, state string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 {
		return t, "", false
	}
	ip, port, _ := strings.Cut(f[1], ":")
	b, err := hex.DecodeString(ip)
	if err != nil || len(b)%4 != 0 {
		return t, "", false
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word) // little endian, on all systems that qtd is built for
	}
	addr, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	uid, uidErr := strconv.ParseUint(f[7], 10, 32)
	if !ok || err != nil || uidErr != nil {
		return t, "", false
	}
	return Taker{UID: uint32(uid), address: netip.AddrPortFrom(addr, uint16(n)), inode: f[9]}, f[3], true
}

// processOf returns the process that has a socket open, or 0 if this process may not see it.
func processOf(inode string) int {
	want := "socket:[" + inode + "]"
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == want {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			return pid
		}
	}
	return 0
}
