package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A Host has what was measured of a server and of the paths to it.
type Host struct {
	Name      string           // as the user has named it
	Port      uint16           // of the daemon, 0 if no login has told it
	Local     bool             // it is this machine
	Addresses []netip.AddrPort // that the name stands for
	NameErr   error            // why it stands for none
	Jumped    bool             // ssh goes there by a proxy or a jump host

	Candidates []Candidate
	Knock      *Knock     // if no candidate by UDP works
	Web        *Candidate // by HTTPS, if no candidate by TCP works
	NAT        NAT
	Key        HostKey
	Login      Login

	Client string // name and version of this program
	Server *Server
	Limits Limits
}

// A Candidate is an address of the server over an interface and a protocol, and what trying it gave.
type Candidate struct {
	UDP       bool
	Interface string
	Remote    netip.AddrPort
	RTT       time.Duration
	Err       error // nil if something has answered
}

// A Knock has the answers to small and to large UDP packets.
type Knock struct {
	Small, Large bool
	MTU          int // of the interface, 0 if that is not known
}

// A NAT has our address, as the server sees it and here.
type NAT struct {
	Client string
	Local  netip.Addr
}

// A HostKey is the key that the server has shown.
type HostKey struct {
	Key       string // type and fingerprint, empty if it has shown none
	Err, Todo string // why it is not accepted
}

// A Login is how the user was let in.
type Login struct {
	By        string // "ssh", or the transport
	Of        string // the check that Err belongs to: hostkey, auth (also if empty), version, limits, name or udp
	Err, Todo string
}

// A Server has what the server says of itself.
type Server struct {
	Software string // name and version
	Proof    string // of the login
	Granted  bool
	Ahead    time.Duration // of our clock
	Logout   Logout
	Account  string
}

// Limits are what the account has of the server, and may have.
type Limits struct {
	Sessions, MaxSessions uint32
	Memory, MaxMemory     uint64
}

// A Logout is what the last logout of an account does to its sessions.
type Logout int

// The values of Logout.
const (
	LogoutUnknown Logout = iota
	LogoutKeeps
	LogoutEnds
)

// Report judges a host.
func (h *Host) Report() Report {
	var r Report
	h.name(&r)
	h.reach(&r)
	h.mtu(&r)
	h.nat(&r)
	h.paths(&r)
	h.hostKey(&r)
	h.auth(&r)
	h.server(&r)
	return r
}

func (h *Host) name(r *Report) {
	var addresses []string
	for _, a := range h.Addresses {
		addresses = append(addresses, a.Addr().String())
	}
	switch {
	case h.NameErr != nil && h.Jumped:
		r.Add("name", Warn, "ssh reaches it by a proxy; UDP and TCP need a name that resolves here (HostName in ssh's configuration)",
			"%s: %v", h.Name, h.NameErr)
	case h.NameErr != nil:
		r.Add("name", Fail, "check the name of the host, and your network", "%s: %v", h.Name, h.NameErr)
	case len(addresses) == 0:
		r.Add("name", Skip, "", "not looked up")
	default:
		r.Add("name", OK, "", "%s is %s", h.Name, strings.Join(addresses, ", "))
	}
}

// tried returns the candidates by UDP or TCP that work, the fastest first, and the others.
func (h *Host) tried(udp bool) (good, bad []Candidate) {
	for _, c := range h.Candidates {
		switch {
		case c.UDP != udp:
		case c.Err == nil:
			good = append(good, c)
		default:
			bad = append(bad, c)
		}
	}
	slices.SortStableFunc(good, func(a, b Candidate) int { return int(a.RTT - b.RTT) })
	return good, bad
}

// reach judges UDP and TCP. What does not work is a failure only if nothing does.
func (h *Host) reach(r *Report) {
	for _, udp := range []bool{true, false} {
		id := "tcp"
		if udp {
			id = "udp"
		}
		good, bad := h.tried(udp)
		alternative, _ := h.tried(!udp)
		state, meanwhile := Warn, ""
		switch {
		case len(good) > 0:
			r.Add(id, OK, "", "%v answers in %s", good[0].Remote, milliseconds(good[0].RTT))
			continue
		case len(bad) == 0 && h.Port == 0:
			r.Add(id, Skip, "", "not tried: the daemon's port is not known before a login (-p names it)")
			continue
		case len(bad) == 0:
			r.Add(id, Skip, "", "not tried: there is no address with a route")
			continue
		case len(alternative) > 0 && udp:
			meanwhile = "; sessions run over TCP meanwhile, which a lossy network slows down"
		case len(alternative) > 0:
			meanwhile = "; without it, sessions are slow or fail in networks that block UDP"
		case h.Web != nil && h.Web.Err == nil:
			meanwhile = "; sessions run over HTTPS meanwhile, which a lossy network slows down"
		case h.Login.By != "" && h.Login.Err == "":
			meanwhile = "; sessions run over ssh meanwhile, and are not kept when it cannot log in again"
		default:
			state = Fail
		}
		r.Add(id, state, h.open(strings.ToUpper(id))+meanwhile, "no answer from %v: %v", bad[0].Remote, bad[0].Err)
	}
	switch w := h.Web; {
	case w == nil:
	case w.Err == nil:
		r.Add("https", OK, "", "%v answers in %s", w.Remote, milliseconds(w.RTT))
	default:
		r.Add("https", Skip, "", "no page of a daemon at %v: %v", w.Remote, w.Err)
	}
}

// open says what lets packets through.
func (h *Host) open(protocol string) string {
	ports := fmt.Sprintf("port %d", h.Port)
	if h.Server != nil && h.Server.Granted {
		ports = "ports 60000 to 61000"
	}
	return fmt.Sprintf("check that qtd runs there (qtd doctor), and open %s %s in firewalls on the way", protocol, ports)
}

// packetSize is the payload of the packets of QUIC, and headers what IP and UDP add, in bytes.
const (
	packetSize = 1200
	headers4   = 28
	headers6   = 48
)

func (h *Host) mtu(r *Report) {
	good, _ := h.tried(true)
	switch k := h.Knock; {
	case len(good) > 0:
		r.Add("mtu", OK, "", "packets of %d bytes arrive; qt sends none that are larger", packetSize)
	case k == nil || !k.Small:
		r.Add("mtu", Skip, "", "not measured: no answer by UDP")
	case k.Large:
		r.Add("mtu", Skip, "", "packets of %d bytes arrive, and no connection is made", packetSize)
	default:
		own := ""
		if k.MTU > 0 && k.MTU < packetSize+headers6 {
			own = fmt.Sprintf(" (the interface's MTU is %d)", k.MTU)
		}
		r.Add("mtu", Warn, fmt.Sprintf("give the VPN, tunnel or interface on the way an MTU of 1280 (QUIC needs %d, with IPv6 %d)",
			packetSize+headers4, packetSize+headers6),
			"small UDP packets arrive, those of %d bytes do not%s", packetSize, own)
	}
}

func (h *Host) nat(r *Report) {
	seen, err := netip.ParseAddrPort(h.NAT.Client)
	switch {
	case err != nil || !h.NAT.Local.IsValid():
		r.Add("nat", Skip, "", "not known: the server has not said where it sees us")
	case h.Jumped && h.Login.By == "ssh":
		r.Add("nat", Skip, "", "not known: the server sees the proxy or jump host of ssh, at %v", seen.Addr())
	case seen.Addr().Unmap() == h.NAT.Local.Unmap():
		r.Add("nat", OK, "", "no NAT")
	default:
		r.Add("nat", OK, "", "a NAT shows us as %v", seen)
	}
}

// paths tells what each interface can do.
func (h *Host) paths(r *Report) {
	type can struct{ udp, tcp time.Duration }
	found := make(map[string]*can)
	var names []string
	for _, w := range h.Candidates {
		c := found[w.Interface]
		if c == nil {
			c = new(can)
			found[w.Interface] = c
			names = append(names, w.Interface)
		}
		best := &c.tcp
		if w.UDP {
			best = &c.udp
		}
		if w.Err == nil && (*best == 0 || w.RTT < *best) {
			*best = max(w.RTT, 1)
		}
	}
	if len(names) == 0 {
		r.Add("paths", Skip, "", "not tried")
		return
	}
	slices.Sort(names)
	says := func(rtt time.Duration) string {
		if rtt == 0 {
			return "no"
		}
		return milliseconds(rtt)
	}
	var lines, dead []string
	for _, name := range names {
		c := found[name]
		shown := name
		if shown == "" {
			shown = "an unknown interface"
		}
		lines = append(lines, fmt.Sprintf("%s: UDP %s, TCP %s", shown, says(c.udp), says(c.tcp)))
		if c.udp == 0 && c.tcp == 0 {
			dead = append(dead, shown)
		}
	}
	switch {
	case len(dead) == len(names) && h.Web != nil && h.Web.Err == nil:
		r.Add("paths", Warn, "sessions run over HTTPS; see the lines udp and tcp", "%s", strings.Join(lines, "; "))
	case len(dead) == len(names) && h.Login.Err == "":
		r.Add("paths", Warn, "sessions run over ssh; see the lines udp and tcp", "%s", strings.Join(lines, "; "))
	case len(dead) == len(names):
		r.Add("paths", Fail, "check your network, and the lines udp and tcp", "%s", strings.Join(lines, "; "))
	case len(dead) > 0:
		r.Add("paths", Warn, fmt.Sprintf("sessions avoid %s until it leads to the server", strings.Join(dead, " and ")),
			"%s", strings.Join(lines, "; "))
	default:
		r.Add("paths", OK, "", "%s", strings.Join(lines, "; "))
	}
}

func (h *Host) hostKey(r *Report) {
	switch {
	case h.Login.Of == "hostkey":
		r.Add("hostkey", Fail, h.Login.Todo, "%s", h.Login.Err)
	case h.Key.Err != "" && h.Login.Err == "":
		r.Add("hostkey", Warn, h.Key.Todo, "%s", h.Key.Err)
	case h.Key.Err != "":
		r.Add("hostkey", Fail, h.Key.Todo, "%s", h.Key.Err)
	case h.Key.Key != "":
		r.Add("hostkey", OK, "", "%s is the key that is known", h.Key.Key)
	default:
		r.Add("hostkey", Skip, "", "the server has shown none")
	}
}

func (h *Host) auth(r *Report) {
	switch {
	case h.Login.Err == "" && h.Server != nil && h.Server.Proof != "" && h.Server.Proof != h.Login.By:
		r.Add("auth", OK, "", "logged in over %s by %s", h.Login.By, h.Server.Proof)
	case h.Login.Err == "":
		r.Add("auth", OK, "", "logged in over %s", h.Login.By)
	case h.Login.Of == "" || h.Login.Of == "auth":
		r.Add("auth", Fail, h.Login.Todo, "%s", h.Login.Err)
	default:
		r.Add("auth", Skip, "", "not tried: see %s", h.Login.Of)
	}
}

// maxAhead is how far the clocks of two machines may be apart: people see times of both.
const maxAhead = 30 * time.Second

func (h *Host) server(r *Report) {
	s := h.Server
	switch {
	case h.Login.Of == "version":
		r.Add("version", Fail, h.Login.Todo, "%s", h.Login.Err)
	case s == nil:
		r.Add("version", Skip, "", "%s; the server's is not known without a login", h.Client)
	default:
		r.Add("version", OK, "", "%s here, %s there", h.Client, s.Software)
	}
	if s == nil {
		for _, id := range []string{"clock", "limits", "linger"} {
			if id == h.Login.Of {
				r.Add(id, Fail, h.Login.Todo, "%s", h.Login.Err)
			} else {
				r.Add(id, Skip, "", "the server has not told")
			}
		}
		return
	}
	if ahead := s.Ahead.Round(time.Second); ahead.Abs() > maxAhead {
		where := "ahead of"
		if ahead < 0 {
			where = "behind"
		}
		r.Add("clock", Warn, "have both clocks set by the network (timedatectl set-ntp true)",
			"the server's clock is %v %s ours: times in qt ls are wrong, and keys may seem expired", ahead.Abs(), where)
	} else {
		r.Add("clock", OK, "", "the clocks are less than %v apart", maxAhead)
	}
	h.limits(r)
	switch s.Logout {
	case LogoutKeeps:
		r.Add("linger", OK, "", "sessions live on when %s logs out of the server", s.Account)
	case LogoutEnds:
		r.Add("linger", Warn, fmt.Sprintf("loginctl enable-linger %s on the server, or run qtd there as a service of the machine", s.Account),
			"the server ends the sessions when %s logs out of it", s.Account)
	default:
		r.Add("linger", Skip, "", "the server does not know what a logout ends")
	}
}

func (h *Host) limits(r *Report) {
	l := h.Limits
	found := fmt.Sprintf("%d of %d sessions; %s of %s of output kept", l.Sessions, l.MaxSessions, mebibytes(l.Memory), mebibytes(l.MaxMemory))
	switch {
	case l.Sessions >= l.MaxSessions:
		r.Add("limits", Fail, "end sessions with qt kill, or raise max_sessions_per_user in qtd.toml", "%s: no new session", found)
	case l.Memory >= l.MaxMemory:
		r.Add("limits", Fail, "end sessions with qt kill, or raise max_buffer_total in qtd.toml", "%s: no new session", found)
	case uint64(l.Sessions)*5 >= uint64(l.MaxSessions)*4 || l.Memory >= l.MaxMemory/5*4:
		r.Add("limits", Warn, "end sessions that you do not need with qt kill", "%s", found)
	default:
		r.Add("limits", OK, "", "%s", found)
	}
}

func milliseconds(d time.Duration) string {
	ms := d.Seconds() * 1000
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func mebibytes(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
