package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var (
	daemon     = netip.MustParseAddrPort("192.0.2.7:4433")
	daemon6    = netip.MustParseAddrPort("[2001:db8::7]:4433")
	errSilence = errors.New("nothing comes back")
)

// good returns a host of which nothing is wrong.
func good() *Host {
	return &Host{
		Name: "host", Port: 4433, Addresses: []netip.AddrPort{daemon, daemon6},
		Candidates: []Candidate{
			{UDP: true, Interface: "wlan0", Remote: daemon, RTT: 20 * time.Millisecond},
			{UDP: true, Interface: "wwan0", Remote: daemon, RTT: 70 * time.Millisecond},
			{Interface: "wlan0", Remote: daemon, RTT: 21 * time.Millisecond},
			{Interface: "wwan0", Remote: daemon, RTT: 71 * time.Millisecond},
		},
		NAT:    NAT{Client: "192.0.2.99:5000", Local: netip.MustParseAddr("10.0.0.2")},
		Key:    HostKey{Key: "ssh-ed25519 SHA256:x"},
		Login:  Login{By: "UDP"},
		Client: "qt 1",
		Server: &Server{Software: "qtd 2", Proof: "SHA256:y", Logout: LogoutKeeps, Account: "ann"},
		Limits: Limits{Sessions: 3, MaxSessions: 100, Memory: 4 << 20, MaxMemory: 1 << 30},
	}
}

// Each line says what was found, and what to do about it.
func TestHost(t *testing.T) {
	blockUDP := func(h *Host) { h.Candidates[0].Err, h.Candidates[1].Err = errSilence, errSilence }
	onlyHTTPS := func(h *Host) {
		for i := range h.Candidates {
			h.Candidates[i].Err = errSilence
		}
		h.Web = &Candidate{Remote: netip.MustParseAddrPort("192.0.2.7:443"), RTT: 30 * time.Millisecond}
	}
	blockTCP := func(h *Host) { h.Candidates[2].Err, h.Candidates[3].Err = errSilence, errSilence }
	denied := func(h *Host) {
		h.Login, h.Server = Login{Err: "permission denied", Todo: "use another key"}, nil
	}
	for _, test := range []struct {
		why    string
		change func(*Host)
		want   string // the start of a line
	}{
		{"good", nil, "ok    name      host is 192.0.2.7, 2001:db8::7"},
		{"good", nil, "ok    udp       192.0.2.7:4433 answers in 20 ms"},
		{"good", nil, "ok    tcp       192.0.2.7:4433 answers in 21 ms"},
		{"good", nil, "ok    mtu       packets of 1200 bytes arrive; qt sends none that are larger"},
		{"good", nil, "ok    nat       a NAT shows us as 192.0.2.99:5000"},
		{"good", nil, "ok    paths     wlan0: UDP 20 ms, TCP 21 ms; wwan0: UDP 70 ms, TCP 71 ms"},
		{"good", nil, "ok    hostkey   ssh-ed25519 SHA256:x is the key that is known"},
		{"good", nil, "ok    auth      logged in over UDP by SHA256:y"},
		{"good", nil, "ok    version   qt 1 here, qtd 2 there"},
		{"good", nil, "ok    clock     the clocks are less than 30s apart"},
		{"good", nil, "ok    limits    3 of 100 sessions; 4.0 MiB of 1024.0 MiB of output kept"},
		{"good", nil, "ok    linger    sessions live on when ann logs out of the server"},

		{"no name", func(h *Host) {
			*h = Host{Name: "host", NameErr: errors.New("no such host"), Login: Login{Of: "name", Err: "x"}}
		},
			"fail  name      host: no such host — check the name of the host, and your network"},
		{"no name here", func(h *Host) { h.Jumped, h.NameErr, h.Candidates = true, errors.New("no such host"), nil },
			"warn  name      host: no such host — ssh reaches it by a proxy; "},

		{"UDP is blocked", blockUDP, "warn  udp       no answer from 192.0.2.7:4433: nothing comes back — check that qtd runs there (qtd doctor), " +
			"and open UDP port 4433 in firewalls on the way; sessions run over TCP meanwhile"},
		{"UDP to a granted daemon is blocked", func(h *Host) { blockUDP(h); h.Server.Granted = true },
			"warn  udp       no answer from 192.0.2.7:4433: nothing comes back — check that qtd runs there (qtd doctor), and open UDP ports 60000 to 61000"},
		{"TCP is blocked", blockTCP, "warn  tcp       no answer from 192.0.2.7:4433: nothing comes back — "},
		{"both are", func(h *Host) { blockUDP(h); blockTCP(h); denied(h) }, "fail  udp       no answer"},
		{"both are", func(h *Host) { blockUDP(h); blockTCP(h); denied(h) }, "fail  tcp       no answer"},
		{"both are, ssh works", func(h *Host) { blockUDP(h); blockTCP(h); h.Login.By = "ssh" }, "warn  udp       no answer"},
		{"both are, ssh works", func(h *Host) { blockUDP(h); blockTCP(h); h.Login.By = "ssh" }, "warn  paths     wlan0: UDP no, TCP no; wwan0: UDP no, TCP no — sessions run over ssh"},
		{"both are", func(h *Host) { blockUDP(h); blockTCP(h); denied(h) }, "fail  paths     wlan0: UDP no, TCP no; wwan0: UDP no, TCP no — check your network"},
		{"only HTTPS works", onlyHTTPS, "ok    https     192.0.2.7:443 answers in 30 ms"},
		{"only HTTPS works", onlyHTTPS, "warn  tcp       no answer from 192.0.2.7:4433: nothing comes back — check that qtd runs there (qtd doctor), " +
			"and open TCP port 4433 in firewalls on the way; sessions run over HTTPS meanwhile"},
		{"only HTTPS works", onlyHTTPS, "warn  paths     wlan0: UDP no, TCP no; wwan0: UDP no, TCP no — sessions run over HTTPS"},
		{"another server at HTTPS", func(h *Host) { onlyHTTPS(h); h.Web.Err = errSilence }, "skip  https     no page of a daemon at 192.0.2.7:443: nothing comes back"},
		{"no login by ssh", func(h *Host) { *h = Host{Name: "host", Login: Login{Err: "denied"}} }, "skip  udp       not tried: the daemon's port is not known"},

		{"small packets only", func(h *Host) { blockUDP(h); h.Knock = &Knock{Small: true, MTU: 1000} },
			"warn  mtu       small UDP packets arrive, those of 1200 bytes do not (the interface's MTU is 1000) — give the VPN, tunnel or interface on the way an MTU of 1280"},
		{"no packets", func(h *Host) { blockUDP(h); h.Knock = &Knock{} }, "skip  mtu       not measured: no answer by UDP"},
		{"packets, and no connection", func(h *Host) { blockUDP(h); h.Knock = &Knock{Small: true, Large: true} }, "skip  mtu       packets of 1200 bytes arrive, and no connection"},

		{"no NAT", func(h *Host) { h.NAT.Client = "10.0.0.2:1" }, "ok    nat       no NAT"},
		{"behind a jump host", func(h *Host) { h.Jumped, h.Login.By = true, "ssh" }, "skip  nat       not known: the server sees the proxy"},
		{"past a jump host", func(h *Host) { h.Jumped = true }, "ok    nat       a NAT shows us as 192.0.2.99:5000"},
		{"no measurement", func(h *Host) { h.NAT = NAT{} }, "skip  nat       not known"},

		{"WiFi leads nowhere", func(h *Host) { h.Candidates[0].Err, h.Candidates[2].Err = errSilence, errSilence },
			"warn  paths     wlan0: UDP no, TCP no; wwan0: UDP 70 ms, TCP 71 ms — sessions avoid wlan0 until it leads to the server"},

		{"an unknown key", func(h *Host) { h.Login, h.Server = Login{Of: "hostkey", Err: "unknown", Todo: "accept it"}, nil }, "fail  hostkey   unknown — accept it"},
		{"an unknown key", func(h *Host) { h.Login, h.Server = Login{Of: "hostkey", Err: "unknown", Todo: "accept it"}, nil }, "skip  auth      not tried: see hostkey"},
		{"another key than ssh's", func(h *Host) { h.Key.Err, h.Key.Todo, h.Login.By = "it is another one", "look", "ssh" }, "warn  hostkey   it is another one — look"},
		{"no login", denied, "fail  auth      permission denied — use another key"},
		{"no login", denied, "skip  limits    the server has not told"},

		{"no qtd", func(h *Host) {
			h.Login, h.Server = Login{Of: "version", Err: "there is no qtd", Todo: "qt install host"}, nil
		}, "fail  version   there is no qtd — qt install host"},
		{"a fast clock", func(h *Host) { h.Server.Ahead = time.Hour }, "warn  clock     the server's clock is 1h0m0s ahead of ours"},
		{"a slow clock", func(h *Host) { h.Server.Ahead = -time.Minute }, "warn  clock     the server's clock is 1m0s behind ours: times in qt ls are wrong, and keys may seem expired — have both clocks"},
		{"many sessions", func(h *Host) { h.Limits.Sessions = 80 }, "warn  limits    80 of 100 sessions; 4.0 MiB of 1024.0 MiB of output kept — end sessions"},
		{"all sessions", func(h *Host) { h.Limits.Sessions = 100 }, "fail  limits    100 of 100 sessions; 4.0 MiB of 1024.0 MiB of output kept: no new session — end sessions with qt kill, or raise max_sessions_per_user"},
		{"all memory", func(h *Host) { h.Limits.Memory = 1 << 30 }, "fail  limits    3 of 100 sessions; 1024.0 MiB of 1024.0 MiB of output kept: no new session — end sessions with qt kill, or raise max_buffer_total"},
		{"busy", func(h *Host) { h.Login, h.Server = Login{Of: "limits", Err: "busy", Todo: "wait"}, nil }, "fail  limits    busy — wait"},
		{"logout ends all", func(h *Host) { h.Server.Logout = LogoutEnds }, "warn  linger    the server ends the sessions when ann logs out of it — loginctl enable-linger ann on the server"},
		{"logout does what?", func(h *Host) { h.Server.Logout = LogoutUnknown }, "skip  linger    the server does not know"},
	} {
		h := good()
		if test.change != nil {
			test.change(h)
		}
		var b bytes.Buffer
		r := h.Report()
		if err := r.Print(&b, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+b.String(), "\n"+test.want) {
			t.Errorf("%s: there is no line\n%s\nin\n%s", test.why, test.want, b.String())
		}
		if lines := len(r); lines != 12 && (h.Web == nil || lines != 13) {
			t.Errorf("%s: %d lines", test.why, len(r))
		}
		if failed := strings.Contains("\n"+b.String(), "\nfail"); r.Failed() != failed {
			t.Errorf("%s: Failed is %v", test.why, r.Failed())
		}
		b.Reset()
		var decoded Report
		if err := r.Print(&b, true); err != nil || json.Unmarshal(b.Bytes(), &decoded) != nil || len(decoded) != len(r) {
			t.Errorf("%s: JSON %s", test.why, b.String())
		}
	}
}
