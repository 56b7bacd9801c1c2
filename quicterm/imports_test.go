package quicterm_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Each package of the module may import what its row names, and nothing else:
// packages of this module by their path in it, others by their module. The
// standard library is free, except for the barriers below. A row is exact: what
// it names is imported on at least one of the systems.
//
// To let a package import more, add it to the row, and check that the row's role
// still holds. CONTRIBUTING.md describes this gate.
var packages = []struct {
	path    string
	role    string // what the package is for, and what it does not know
	imports string
	tests   string // what only its tests import
}{
	{
		path: "buffer", role: "frames, ring and reorder window, for any transport",
		tests: "pgregory.net/rapid",
	},
	{
		path: "configs", role: "the settings files: it reads them, and acts on nothing",
		imports: "github.com/pelletier/go-toml/v2",
	},

	{path: "migrate", role: "decides which path to use; pure, the caller dials"},
	{
		path: "migrate/netmon", role: "reports what the system says of the network; sends nothing",
		imports: "golang.org/x/sys",
		tests:   "bench/bubble",
	},
	{path: "migrate/carrier", role: "the interface of a connection, of any kind"},
	{
		path: "migrate/carrier/carriertest", role: "the test suite of that interface",
		imports: "migrate/carrier",
	},
	{
		path: "migrate/carrier/nonblock", role: "system calls that do not block; knows nothing of what they move",
		imports: "golang.org/x/sys",
	},
	{
		path: "migrate/carrier/pipe", role: "the carrier over any ordered byte stream",
		imports: "migrate/carrier",
		tests:   "migrate/carrier/carriertest",
	},
	{
		path: "migrate/carrier/quic", role: "the carrier over QUIC, the only package that knows QUIC",
		imports: "migrate/carrier migrate/carrier/nonblock migrate/netmon github.com/quic-go/quic-go golang.org/x/net golang.org/x/sys",
		tests:   "bench/bubble bench/netem migrate/carrier/carriertest",
	},
	{
		path: "migrate/carrier/sealed", role: "protects what a carrier of any kind moves, with keys that its user has",
		imports: "migrate/carrier",
		tests:   "migrate/carrier/carriertest",
	},
	{
		path: "migrate/carrier/tcp", role: "the carrier over TLS on TCP",
		imports: "migrate/carrier migrate/carrier/nonblock migrate/carrier/pipe golang.org/x/sys",
		tests:   "migrate/carrier/carriertest",
	},
	{
		path: "migrate/carrier/unixsock", role: "the carrier between daemon and holder",
		imports: "migrate/carrier migrate/carrier/nonblock golang.org/x/sys",
		tests:   "migrate/carrier/carriertest",
	},
	{
		path: "migrate/carrier/websocket", role: "a connection over a WebSocket, on which the carrier over TLS runs",
		imports: "github.com/coder/websocket",
		tests:   "migrate/carrier migrate/carrier/carriertest migrate/carrier/tcp",
	},

	{
		path: "quicterm", role: "the documentation and the examples of the whole",
		tests: "bench/rig configs quicterm/client/bootstrap quicterm/client quicterm/holder/holdertest quicterm/server quicterm/wire golang.org/x/crypto",
	},
	{path: "quicterm/screen/asciicast", role: "recordings in asciinema's formats; pure, takes the time as an argument"},
	{path: "quicterm/session/gate", role: "a mutex whose holders wait with a context", tests: "bench/bubble"},
	{path: "quicterm/machine/logqueue", role: "a log that does not block those who log"},
	{
		path: "quicterm/prometheus", role: "counts, and serves the counts for Prometheus; knows nothing of what it counts",
		imports: "golang.org/x/net",
	},
	{
		path: "quicterm/quota", role: "the fair shares of rates, places and turns; pure, takes the time as an argument",
		imports: "golang.org/x/time", tests: "pgregory.net/rapid",
	},
	{
		path: "quicterm/web", role: "the page of a browser; knows neither sessions nor logins",
		imports: "migrate/carrier/websocket", tests: "github.com/coder/websocket",
	},
	{
		path: "quicterm/web/link", role: "the links that let a page in, and the keys that it proves itself by; knows no connection",
		imports: "quicterm/auth golang.org/x/crypto",
	},
	{path: "quicterm/version", role: "the version of the programs"},
	{path: "quicterm/screen/charset", role: "the character sets of terminals; pure"},
	{path: "quicterm/screen/pool", role: "gives values small ids; pure"},
	{path: "quicterm/screen/marks", role: "what shells tell of prompts, commands and directories"},
	{
		path: "quicterm/screen/vt", role: "finds the control sequences in terminal output; knows no terminal",
		tests: "pgregory.net/rapid",
	},
	{
		path: "quicterm/screen", role: "what a terminal shows; pure, a holder and a client each have one",
		imports: "quicterm/screen/charset quicterm/screen/marks quicterm/screen/pool quicterm/screen/vt github.com/clipperhouse/displaywidth",
		tests:   "pgregory.net/rapid",
	},
	{
		path: "quicterm/terminal/predict", role: "what typed keys will show; pure, and knows no session",
		imports: "quicterm/screen quicterm/wire",
	},
	{
		path: "quicterm/forward", role: "moves forwarded connections over a pipe; knows no session and no login",
		imports: "quicterm/forward/permit quicterm/wire github.com/libp2p/go-yamux/v5",
	},
	{path: "quicterm/forward/permit", role: "what a login may forward; pure"},
	{
		path: "quicterm/client/forwards", role: "the client's end of forwarding; knows no way to a server",
		imports: "quicterm/auth quicterm/client quicterm/forward quicterm/forward/permit quicterm/terminal quicterm/wire golang.org/x/crypto",
	},
	{
		path: "quicterm/files", role: "serves the files of an account over a pipe; knows no session and no login",
		imports: "github.com/pkg/sftp",
	},
	{
		path: "quicterm/client/files", role: "moves files between this machine and servers; knows no way to a server",
		imports: "quicterm/client quicterm/files quicterm/wire github.com/pkg/sftp",
	},
	{
		path: "quicterm/client/clipboard", role: "copies the clipboard of this machine to a server; knows no terminal and no way to a server",
		imports: "quicterm/client quicterm/client/files quicterm/files quicterm/wire",
	},
	{
		path: "quicterm/client/offers", role: "asks the user what a server wants here, and saves files; knows no way to a server",
		imports: "quicterm/client quicterm/client/files quicterm/terminal quicterm/wire",
	},
	{
		path: "quicterm/holder/offering", role: "offers a file of the account to a session's client; knows no holder but that of its session",
		imports: "quicterm/files quicterm/holder/socket quicterm/wire",
	},
	{
		path: "quicterm/drive", role: "uses sessions as people do, for programs; knows no way to a server",
		imports: "quicterm/client quicterm/screen quicterm/screen/marks quicterm/screen/vt quicterm/session/gate quicterm/wire",
		tests:   `bench/rig configs quicterm/client/bootstrap quicterm/holder/holdertest quicterm/server golang.org/x/crypto`,
	},
	{
		path: "quicterm/mcp", role: "the tools of a coding agent; knows no way to a host but that of its caller",
		imports: `quicterm/client quicterm/client/reach quicterm/drive quicterm/screen/picture quicterm/wire
			github.com/modelcontextprotocol/go-sdk`,
	},
	{
		path: "quicterm/screen/picture", role: "shows a screen as text and as an image",
		imports: "quicterm/screen golang.org/x/image",
	},
	{
		path: "quicterm/session", role: "one end of a session; pure, takes the time as an argument",
		imports: "buffer",
	},
	{
		path: "quicterm/session/driver", role: "runs a pure end of a session on carriers of any kind",
		imports: "buffer migrate/carrier quicterm/session github.com/klauspost/compress",
		tests:   "bench/bubble quicterm/wire",
	},
	{
		path: "quicterm/wire", role: "the messages, the frames of a terminal, and SPEC.md",
		imports: "buffer github.com/fxamacker/cbor/v2",
	},
	{
		path: "quicterm/machine/account", role: "the accounts of this machine",
		imports: "quicterm/machine/command quicterm/quota golang.org/x/time",
	},
	{
		path: "quicterm/machine/keyfile", role: "reads authorized_keys files, in processes with the rights of the account",
		imports: "quicterm/machine/enrolled quicterm/machine/account quicterm/auth quicterm/machine/keyring quicterm/machine/memory quicterm/quota golang.org/x/sys",
		tests:   "bench/rig golang.org/x/crypto",
	},
	{
		path: "quicterm/machine/enrolled", role: "the files of the keys that logins of an account have enrolled; lets nobody in",
		imports: "quicterm/auth quicterm/wire golang.org/x/crypto",
	},
	{
		path: "quicterm/auth", role: "host keys, user keys, tokens; knows no connection but its TLS state",
		imports: "quicterm/forward/permit github.com/hiddeco/sshsig golang.org/x/crypto",
		tests:   "golang.org/x/sys",
	},
	{
		path: "quicterm/holder/events", role: "what happens to a session, for those that follow it; pure, takes the time as an argument",
		imports: "buffer quicterm/screen/marks quicterm/wire",
	},
	{
		path: "quicterm/machine/terminfo", role: "compiled descriptions of terminals: finds, checks and writes them; knows no wire",
	},
	{
		path: "quicterm/holder/description", role: "the folder with the description of a session's terminal; knows no program",
		imports: "quicterm/holder/socket quicterm/machine/rundir quicterm/machine/terminfo quicterm/wire",
	},
	{
		path: "quicterm/holder/persist", role: "what the disk has of a session: a file, which its process holds; knows no terminal",
		imports: "quicterm/machine/rundir quicterm/wire golang.org/x/sys",
	},
	{
		path: "quicterm/machine/sandbox", role: "tells whether a process is in a sandbox; knows none of them",
		imports: "golang.org/x/sys",
	},
	{
		path: "quicterm/machine/keyring", role: "the kernel's keyrings of processes; knows no key",
		imports: "golang.org/x/sys",
	},
	{
		path: "quicterm/machine/command", role: "runs programs of the system; knows none of them",
		imports: "quicterm/machine/keyring", tests: "bench/rig",
	},
	{
		path: "quicterm/machine/memory", role: "the memory of the machine, and what processes take of it",
		imports: "golang.org/x/sys",
	},
	{
		path: "quicterm/machine/sshd", role: "what the sshd of this machine allows a login; reads no file of an account",
		imports: "quicterm/auth quicterm/forward/permit quicterm/machine/command quicterm/quota golang.org/x/crypto",
	},
	{
		path: "quicterm/client/sshconfig", role: "what ssh's configuration says about a host; opens no connection",
	},
	{
		path: "quicterm/machine/pam", role: "starts programs in sessions of PAM, by su; knows no session of quicterm",
		imports: "quicterm/machine/command quicterm/machine/confine quicterm/machine/keyring golang.org/x/sys",
	},
	{
		path: "quicterm/machine/rundir", role: "the folder of the unix sockets, and who is at their other end",
		imports: "golang.org/x/sys",
	},
	{
		path: "quicterm/machine/systemd", role: "what the service manager keeps for a daemon: sockets, and processes that outlive it",
		imports: "quicterm/machine/keyring github.com/godbus/dbus/v5 golang.org/x/sys",
	},
	{path: "quicterm/machine/systemd/systemdtest", role: "boots a real systemd for tests; knows nothing of what runs on it"},
	{
		path: "quicterm/holder/socket", role: "the unix socket of a holder, and requests to it; interprets none",
		imports: "migrate/carrier/unixsock quicterm/machine/rundir quicterm/wire golang.org/x/sys",
	},
	{
		path: "quicterm/holder/agent", role: "the ssh agent of a session, behind which are those of clients; knows no client",
		imports: "quicterm/holder/socket quicterm/machine/rundir quicterm/wire",
	},
	{
		path: "quicterm/holder/spawn", role: "starts the processes of holders; knows nothing of what they do",
		imports: `quicterm/holder/socket quicterm/machine/keyring quicterm/machine/memory quicterm/machine/pam
			quicterm/machine/rundir quicterm/wire golang.org/x/sys`,
	},
	{
		path: "quicterm/holder/sizing", role: "decides which client gives a session its size; pure",
		imports: "quicterm/wire",
	},
	{
		path: "quicterm/holder/fit", role: "fits the ring of a session to the memory of its machine; pure",
		imports: "buffer quicterm/machine/memory",
	},
	{
		path: "quicterm/holder", role: "keeps a session; knows no network",
		imports: `quicterm/machine/enrolled buffer migrate/carrier migrate/carrier/sealed migrate/carrier/unixsock quicterm/auth
			quicterm/holder/agent quicterm/holder/description quicterm/holder/events quicterm/holder/fit quicterm/holder/persist quicterm/holder/sizing
			quicterm/holder/program quicterm/holder/push quicterm/holder/typing quicterm/machine/floodlog quicterm/machine/memory quicterm/machine/pam
			quicterm/machine/rundir quicterm/screen quicterm/session quicterm/session/driver quicterm/session/gate quicterm/wire
			quicterm/holder/socket quicterm/holder/spawn golang.org/x/sys`,
		tests: "bench/bubble migrate/carrier/carriertest quicterm/holder/programtest github.com/fxamacker/cbor/v2 golang.org/x/crypto",
	},
	{
		path: "quicterm/holder/push", role: "messages to the browsers of devices; knows no session",
		imports: "quicterm/auth quicterm/machine/enrolled quicterm/wire golang.org/x/time",
		tests:   "golang.org/x/crypto",
	},
	{
		path: "quicterm/holder/typing", role: "what programs type into a session, and in which order; pure",
		imports: "quicterm/wire",
	},
	{
		path: "quicterm/holder/listening", role: "the ports at which processes of a session listen, by /proc",
		imports: "golang.org/x/sys",
	},
	{
		path: "quicterm/holder/program", role: "a program as a process, on a terminal or on pipes; knows no session",
		imports: `migrate/carrier/nonblock quicterm/holder/listening quicterm/machine/keyring quicterm/machine/pam quicterm/wire github.com/creack/pty
			golang.org/x/sys`,
	},
	{
		path: "quicterm/holder/holdertest", role: "holders in memory, for tests of servers",
		imports: "quicterm/machine/enrolled migrate/carrier migrate/carrier/carriertest migrate/carrier/pipe quicterm/machine/account quicterm/holder quicterm/machine/keyfile quicterm/machine/memory quicterm/wire quicterm/holder/spawn",
		tests:   "quicterm/holder/programtest",
	},
	{
		path: "quicterm/holder/programtest", role: "a program of a session without a process",
		imports: "quicterm/wire",
	},
	{path: "quicterm/machine/floodlog", role: "a log of events that others can cause without end", imports: "golang.org/x/time"},
	{path: "quicterm/machine/panics", role: "contains the panics of what works for one client", imports: "quicterm/machine/floodlog"},
	{
		path: "quicterm/machine/confine", role: "takes from this process what it does not need; knows nothing of what the process does",
		imports: "golang.org/x/net golang.org/x/sys",
	},
	{
		path: "quicterm/monitor/access", role: "decides who gets in, and who stays; talks to no client and knows no holder",
		imports: `quicterm/machine/enrolled configs quicterm/auth quicterm/machine/account quicterm/machine/keyfile quicterm/machine/panics
			quicterm/machine/rundir quicterm/machine/sshd quicterm/monitor/privsep quicterm/quota quicterm/wire`,
		tests: "golang.org/x/crypto",
	},
	{
		path: "quicterm/monitor", role: "the half of a daemon that has its rights: lets clients in, and reaches holders; talks to no client",
		imports: `quicterm/machine/enrolled configs migrate/carrier quicterm/machine/account quicterm/auth quicterm/forward/permit quicterm/doctor
			quicterm/machine/floodlog quicterm/machine/memory
			quicterm/monitor/access quicterm/monitor/keys quicterm/prometheus quicterm/monitor/ports quicterm/monitor/privsep quicterm/monitor/processes
			quicterm/machine/pam quicterm/machine/panics quicterm/machine/rundir quicterm/machine/sandbox quicterm/machine/sshd quicterm/machine/systemd
			quicterm/quota quicterm/wire quicterm/holder/persist quicterm/holder/socket golang.org/x/crypto golang.org/x/sync`,
		tests: `bench/bubble migrate/carrier/unixsock quicterm/holder/holdertest quicterm/holder/programtest quicterm/holder github.com/fxamacker/cbor/v2
			golang.org/x/sys pgregory.net/rapid`,
	},
	{
		path: "quicterm/monitor/keys", role: "the secret keys that outlive a daemon, and their files",
		imports: "quicterm/auth quicterm/machine/rundir",
	},
	{
		path: "quicterm/monitor/ports", role: "opens the sockets of a daemon; reads nothing from them",
		imports: "configs quicterm/machine/rundir quicterm/machine/systemd quicterm/monitor/privsep golang.org/x/sync",
	},
	{
		path: "quicterm/monitor/processes", role: "finds, asks and starts holders; decides nothing about who gets in",
		imports: `migrate/carrier quicterm/doctor quicterm/machine/account quicterm/machine/command quicterm/machine/floodlog
			quicterm/machine/keyring quicterm/machine/memory quicterm/machine/pam quicterm/machine/rundir
			quicterm/machine/systemd quicterm/quota quicterm/wire quicterm/holder/socket quicterm/holder/spawn golang.org/x/sync`,
		tests: "quicterm/holder/holdertest quicterm/machine/keyfile",
	},
	{
		path: "quicterm/monitor/privsep", role: "the calls between the two halves of root's daemon; decides nothing",
		imports: `migrate/carrier migrate/carrier/unixsock quicterm/auth quicterm/machine/account quicterm/machine/confine
			quicterm/machine/keyring quicterm/machine/memory quicterm/machine/panics quicterm/machine/rundir quicterm/wire
			github.com/fxamacker/cbor/v2 golang.org/x/crypto golang.org/x/sys`,
	},
	{
		path: "quicterm/server", role: "talks to clients and relays their bytes to holders, without rights; parses no frame",
		imports: `migrate/carrier migrate/carrier/pipe migrate/carrier/quic migrate/carrier/tcp migrate/carrier/websocket
			quicterm/auth quicterm/machine/floodlog quicterm/web
			quicterm/machine/memory quicterm/prometheus quicterm/monitor quicterm/monitor/privsep quicterm/machine/panics quicterm/quota quicterm/wire golang.org/x/time`,
		tests: `bench/bubble bench/netem buffer configs migrate/carrier/carriertest migrate/carrier/sealed quicterm/machine/account quicterm/holder
			quicterm/holder/holdertest quicterm/holder/programtest quicterm/monitor/processes quicterm/machine/rundir quicterm/session golang.org/x/crypto`,
	},
	{
		path: "quicterm/sim", role: "plays worlds of faults on virtual time; the product is in its tests",
		imports: "github.com/tetratelabs/wazero",
		tests: `bench/bubble bench/netem buffer configs migrate/carrier migrate/netmon quicterm/client quicterm/holder
			quicterm/holder/holdertest quicterm/holder/programtest quicterm/machine/account quicterm/machine/memory quicterm/monitor
			quicterm/monitor/privsep quicterm/screen quicterm/server quicterm/session/gate quicterm/wire golang.org/x/crypto`,
	},
	{
		path: "quicterm/client", role: "the near end of sessions; knows no terminal and no command line",
		imports: `buffer migrate migrate/carrier migrate/carrier/quic migrate/carrier/sealed migrate/carrier/tcp
			migrate/carrier/websocket migrate/netmon quicterm/auth quicterm/session/driver quicterm/session/gate quicterm/session quicterm/wire golang.org/x/crypto`,
		tests: `configs bench/bubble bench/netem migrate/carrier/pipe quicterm/holder quicterm/holder/holdertest quicterm/holder/programtest
			quicterm/server`,
	},
	{
		path: "quicterm/e2e", role: "tests of the programs as people use them",
		tests: `quicterm/web/link bench/netem bench/rig bench/work buffer configs migrate/carrier migrate/carrier/quic
			migrate/carrier/sealed migrate/carrier/tcp quicterm/screen/asciicast quicterm/auth quicterm/client/bootstrap quicterm/client quicterm/drive
			quicterm/screen quicterm/machine/enrolled quicterm/machine/keyring quicterm/machine/terminfo quicterm/machine/systemd/systemdtest quicterm/wire quicterm/holder/socket github.com/creack/pty
			github.com/coder/websocket github.com/modelcontextprotocol/go-sdk golang.org/x/crypto golang.org/x/sys golang.org/x/term`,
	},

	{
		path: "quicterm/client/bootstrap", role: "the first access to a daemon: address, host key, token",
		imports: "migrate/carrier migrate/carrier/pipe quicterm/machine/rundir quicterm/wire golang.org/x/crypto",
		tests:   "bench/bubble",
	},
	{path: "quicterm/doctor", role: "judges what was measured, in words; measures nothing"},
	{
		path: "quicterm/client/install", role: "copies qtd to another machine; the caller brings the login",
		imports: "quicterm/version quicterm/wire",
	},
	{
		path: "quicterm/terminal", role: "keyboard, escapes, display and texts of a session, and the questions before it",
		imports: `migrate/carrier/nonblock quicterm/client quicterm/terminal/predict quicterm/screen quicterm/screen/picture quicterm/screen/vt quicterm/wire github.com/creack/pty
			golang.org/x/sys golang.org/x/term`,
		tests: "bench/bubble",
	},

	{
		path: "quicterm/client/reach", role: "finds a way to a server, asks what a login needs, and remembers it",
		imports: `configs migrate/netmon quicterm/auth quicterm/client quicterm/client/bootstrap quicterm/client/install
			quicterm/client/sshconfig quicterm/machine/terminfo quicterm/terminal quicterm/version quicterm/wire golang.org/x/crypto golang.org/x/term`,
		tests: "golang.org/x/net",
	},

	{
		path: "cmd/qt", role: "the command line of the client",
		imports: `cmd/qt/internal/browser cmd/qt/internal/examine cmd/qt/internal/peek cmd/qt/internal/recording cmd/qt/internal/status
			configs quicterm/auth quicterm/client quicterm/client/bootstrap quicterm/client/clipboard quicterm/client/files
			quicterm/client/forwards quicterm/client/install quicterm/client/offers quicterm/holder/offering quicterm/client/reach quicterm/client/sshconfig quicterm/doctor quicterm/drive quicterm/mcp
			quicterm/screen quicterm/screen/picture quicterm/terminal quicterm/terminal/predict quicterm/version
			quicterm/web/link quicterm/wire github.com/spf13/cobra github.com/spf13/pflag golang.org/x/crypto golang.org/x/term rsc.io/qr`,
		tests: "bench/bubble bench/rig cmd/dist/man github.com/rogpeppe/go-internal",
	},
	{
		path: "cmd/qt/internal/examine", role: "measures what qt doctor tells of a host",
		imports: `quicterm/auth quicterm/client quicterm/client/bootstrap quicterm/client/reach quicterm/doctor quicterm/wire
			golang.org/x/crypto`,
	},
	{
		path: "cmd/qt/internal/peek", role: "the forms of qt peek",
		imports: `quicterm/client/reach quicterm/drive quicterm/screen quicterm/screen/marks quicterm/screen/picture
			golang.org/x/term`,
	},
	{
		path: "cmd/qt/internal/recording", role: "the recordings of qt record and of the setting record",
		imports: "configs quicterm/client quicterm/client/reach quicterm/screen/asciicast quicterm/terminal quicterm/wire",
	},
	{
		path: "cmd/qt/internal/status", role: "what a client tells qt status, and how that asks",
		imports: "quicterm/client quicterm/client/forwards quicterm/client/reach quicterm/machine/rundir quicterm/terminal",
		tests:   "quicterm/holder/socket",
	},
	{
		path: "cmd/qt/internal/browser", role: "serves the page to a browser of this machine, and relays it to a host",
		imports: "quicterm/client/bootstrap quicterm/client/install quicterm/client/reach quicterm/web quicterm/wire golang.org/x/crypto",
	},
	{
		path: "cmd/qtd", role: "the command line of the daemon and of the holder",
		imports: `configs quicterm/auth quicterm/client/bootstrap quicterm/machine/confine quicterm/doctor quicterm/files quicterm/forward quicterm/forward/permit quicterm/holder quicterm/holder/agent quicterm/machine/keyfile quicterm/machine/logqueue
			quicterm/holder/offering
			quicterm/machine/memory quicterm/monitor quicterm/monitor/access quicterm/monitor/privsep quicterm/machine/pam quicterm/machine/rundir quicterm/server quicterm/machine/systemd
			quicterm/version quicterm/wire quicterm/holder/spawn github.com/spf13/cobra`,
		tests: "cmd/dist/man",
	},
	{
		path: "cmd/dist", role: "makes releases; the programs know nothing of it",
		imports: "quicterm/version",
	},
	{
		path: "cmd/dist/man", role: "manual pages from a command line, for tests: no program has it",
		imports: "github.com/spf13/cobra",
	},

	{
		path: "bench", role: "the command line of measurements",
		imports: `bench/measure bench/program bench/report bench/scenario bench/suite bench/topology
			bench/trace bench/work github.com/spf13/cobra`,
		tests: "bench/result",
	},
	{
		path: "bench/barestream", role: "one QUIC stream, for comparison",
		imports: "bench/measure migrate/carrier/quic quicterm/auth",
	},
	{
		path: "bench/demo", role: "draws the session that the README shows",
		tests: "quicterm/screen quicterm/screen/asciicast quicterm/screen/picture",
	},
	{
		path: "bench/event", role: "what can happen to sessions; knows nothing of what is measured",
		imports: "bench/netem bench/rig bench/topology",
	},
	{
		path: "bench/measure", role: "the life of a measurement, and what processes cost",
		imports: "bench/rig golang.org/x/sys",
	},
	{
		path: "bench/program", role: "starts the remote terminals that are compared",
		imports: "bench/measure bench/rig bench/topology",
	},
	{
		path: "bench/report", role: "tables and comparisons of records; knows no scenario",
		imports: "bench/result github.com/aclements/go-moremath",
	},
	{
		path: "bench/scenario", role: "lists what is measured, and the bounds",
		imports: "bench/event bench/measure bench/netem bench/program bench/result bench/rig bench/work",
	},
	{
		path: "bench/screen", role: "the screen of a client's terminal",
		imports: "bench/rig quicterm/screen",
	},
	{
		path: "bench/suite", role: "measures scenarios and keeps their records",
		imports: `bench/event bench/measure bench/netem bench/program bench/report bench/result bench/rig
			bench/scenario bench/topology bench/work
			golang.org/x/sync`,
	},
	{
		path: "bench/trace", role: "replays traces in virtual time, and scores predictions; pure",
		imports: "quicterm/screen/asciicast quicterm/terminal/predict quicterm/screen quicterm/wire",
	},
	{
		path: "bench/topology", role: "lays out machines and links; knows no program",
		imports: "bench/measure bench/netem bench/rig",
		tests:   "golang.org/x/sys",
	},
	{
		path: "bench/work", role: "what is done in sessions, and what is measured of it",
		imports: `bench/barestream bench/measure bench/netem bench/program bench/rig bench/screen bench/topology buffer
			migrate/carrier migrate/carrier/quic migrate/netmon quicterm/auth quicterm/client quicterm/holder
			quicterm/holder/programtest quicterm/machine/rundir quicterm/screen quicterm/wire quicterm/holder/socket quicterm/holder/spawn
			github.com/coder/websocket golang.org/x/term`,
		tests: "github.com/creack/pty",
	},
	{path: "bench/bubble", role: "lets tests run bubbles of synctest under the race detector"},
	{
		path: "bench/netem", role: "emulates links; knows nothing of what it carries",
		imports: "golang.org/x/sys",
		tests:   "bench/bubble bench/rig",
	},
	{path: "bench/result", role: "the records that measurements leave"},
	{
		path: "bench/rig", role: "a host, a daemon and a terminal, for tests and measurements",
		imports: `bench/netem quicterm/session/gate quicterm/wire quicterm/holder/socket github.com/creack/pty
			golang.org/x/crypto golang.org/x/sys`,
	},
}

// A barrier keeps packages from what they must not reach: neither they nor any
// package outside the standard library that they depend on imports it.
var barriers = []struct{ from, reach, why string }{
	{
		"buffer migrate quicterm/screen/asciicast quicterm/session quicterm/screen quicterm/screen/vt",
		"context crypto/tls log log/slog math/rand net os os/exec sync syscall",
		"it is pure: its caller owns sockets, files, goroutines, clocks and chance, so that tests simulate days in milliseconds",
	},
	{
		"quicterm/terminal/predict",
		"context crypto/tls log log/slog net os/exec syscall",
		"it is pure: its caller owns sockets, goroutines and clocks; only the codec of the hints, which it does not use, knows more",
	},
	{
		"migrate/carrier quicterm/wire quicterm/session/gate",
		"crypto/tls log/slog net os/exec os/signal syscall",
		"it is a leaf, and both ends and all tests may import it",
	},
	{
		"quicterm/session/driver",
		"crypto/tls net os os/exec syscall",
		"it runs sessions on carriers of any kind, so it depends on none",
	},
	{
		"configs migrate/netmon quicterm/machine/rundir",
		"crypto/tls net/http os/exec",
		"it asks the system, and starts nothing",
	},
	{
		"quicterm/holder quicterm/auth quicterm/session/driver migrate/carrier/sealed migrate/carrier/unixsock",
		"github.com/quic-go/quic-go github.com/spf13/cobra",
		"a holder runs once per session, for weeks: what it links, each session pays for",
	},
	{
		"quicterm/monitor",
		"github.com/quic-go/quic-go migrate/carrier/quic migrate/carrier/tcp migrate/carrier/pipe quicterm/server",
		"it has root's rights, and what strangers send is not for it",
	},
	{
		"quicterm/client",
		"github.com/creack/pty github.com/spf13/cobra golang.org/x/term os/signal",
		"it is a library, and knows neither a terminal nor the command line that uses it",
	},
	{
		"cmd/qt",
		"quicterm/holder quicterm/monitor quicterm/server",
		"the client runs on systems that have no server",
	},
	{
		"cmd/qtd",
		"migrate quicterm/client",
		"a server follows its clients: it chooses no path",
	},
}

// Only some packages may import these modules, in tests as well.
var owners = []struct{ module, by, why string }{
	{
		"github.com/quic-go/quic-go", "migrate/carrier/quic",
		"another kind of carrier must be able to take its place",
	},
	{
		"github.com/creack/pty", "quicterm/holder/program quicterm/terminal quicterm/e2e bench/rig bench/work",
		"the terminal of a session belongs to the process that outlives all others",
	},
	{
		"github.com/libp2p/go-yamux/v5", "quicterm/forward",
		"both ends must bound what it keeps in the same way",
	},
	{
		"github.com/modelcontextprotocol/go-sdk", "quicterm/mcp quicterm/e2e",
		"only the server of tools knows their protocol",
	},
	{
		"github.com/spf13/cobra", "cmd/qt cmd/qtd cmd/dist/man bench",
		"only a command knows its command line",
	},
}

const module = "github.com/quicterm/quicterm/"

// systems are those that the programs are built for.
var systems = []string{"linux", "darwin", "windows"}

func TestImports(t *testing.T) {
	dependOnSources(t)
	code := make(map[string][]string) // by package, what it imports on any system
	tests := make(map[string][]string)
	reported := make(map[string]bool)
	for _, l := range listAll(t) {
		for _, p := range l {
			if name, own := strings.CutPrefix(p.ImportPath, module); own {
				code[name] = append(code[name], l.names(p.Imports)...)
				tests[name] = append(tests[name], l.names(p.TestImports)...)
				tests[name] = append(tests[name], l.names(p.XTestImports)...)
			}
		}
		for _, b := range barriers {
			for _, from := range strings.Fields(b.from) {
				for _, to := range strings.Fields(b.reach) {
					if chain := l.chain(from, to); chain != nil && !reported[from+to] {
						reported[from+to] = true
						t.Errorf("%s must not reach %s, and does by %s: %s", from, to, strings.Join(chain, " > "), b.why)
					}
				}
			}
		}
	}

	rows := make(map[string]bool)
	for _, p := range packages {
		rows[p.path] = true
		if _, exists := code[p.path]; !exists {
			t.Errorf("%s: no such package: remove its row from quicterm/imports_test.go", p.path)
			continue
		}
		imports := strings.Fields(p.imports)
		compare(t, p.path, p.role, "imports", without(code[p.path], p.path), imports)
		compare(t, p.path, p.role, "tests", without(tests[p.path], append(imports, p.path)...), strings.Fields(p.tests))
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !rows[name] {
			imports := without(code[name], name)
			tests := without(tests[name], append(imports, name)...)
			t.Errorf("%s: new package: add a row to quicterm/imports_test.go that says what it is for and limits what it imports; now:\n"+
				"{\npath: %q, role: \"\",\nimports: %q,\ntests: %q,\n},",
				name, name, strings.Join(imports, " "), strings.Join(tests, " "))
		}
		for _, o := range owners {
			if slices.Contains(slices.Concat(code[name], tests[name]), o.module) && !slices.Contains(strings.Fields(o.by), name) {
				t.Errorf("%s imports %s, which only these may: %s: %s", name, o.module, o.by, o.why)
			}
		}
	}
}

// parsers parse what accounts have written: only a child that has the rights of the account may call
// them (see package keyfile), and the command qtd check, for a file that its user names.
var parsers = map[string]string{
	"auth.NewSearch":         "quicterm/machine/keyfile/message.go",
	"ssh.ParseAuthorizedKey": "quicterm/monitor/check.go",
}

// The daemon, which may be root's, parses no key file, no list of principals and no output of a program.
func TestRootParsesNoKeys(t *testing.T) {
	used := make(map[string]bool)
	for _, folder := range []string{"cmd/qtd", "quicterm/monitor", "quicterm/monitor/*", "quicterm/server", "quicterm/machine/sshd", "quicterm/machine/account", "quicterm/machine/keyfile"} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			content := read(t, file)
			for parser, only := range parsers {
				if strings.Contains(content, parser+"(") {
					used[parser] = true
					if filepath.ToSlash(file) != "../"+only {
						t.Errorf("%s calls %s, which only %s may", file, parser, only)
					}
				}
			}
			if strings.Contains(content, ".search()") && filepath.Base(file) != "child.go" {
				t.Errorf("%s parses keys outside the child of keyfile", file)
			}
		}
	}
	if len(used) != len(parsers) {
		t.Errorf("only %v are called", used)
	}
}

// clientMessages are what clients send, and the reading of a stream. A Resume is none of them: it has a
// fixed form, without a decoder.
var clientMessages = regexp.MustCompile(`\bwire\.(Hello|Answer|Token|Attach|List|Kill|Clear|Describe)\b|\btls\.|quic\.`)

// The monitor, which has root's rights, decodes no message of a client and speaks neither QUIC nor TLS.
// The barriers above keep it from the packages that do.
func TestMonitorDecodesNoClient(t *testing.T) {
	files, err := filepath.Glob("monitor/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for n, line := range strings.Split(read(t, file), "\n") {
			if code, _, _ := strings.Cut(line, "//"); clientMessages.MatchString(code) {
				t.Errorf("%s:%d: %s", file, n+1, line)
			}
		}
	}
}

// compare reports what a row lacks and what it names in vain.
func compare(t *testing.T, name, role, field string, imports, row []string) {
	t.Helper()
	for _, i := range imports {
		if !slices.Contains(row, i) {
			t.Errorf("%s (%s) must not import %s: if it should, add that to %q of its row in quicterm/imports_test.go",
				name, role, i, field)
		}
	}
	for _, i := range row {
		if !slices.Contains(imports, i) {
			t.Errorf("%s does not import %s: remove that from %q of its row in quicterm/imports_test.go", name, i, field)
		}
	}
}

// without returns sorted names, each once, without those of the exceptions.
func without(names []string, exceptions ...string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return slices.Contains(exceptions, n) })
}

// A listing is what go list says of packages and all that they depend on, on one
// system, by import path.
type listing map[string]*listed

type listed struct {
	ImportPath                         string
	Standard                           bool
	Module                             *struct{ Path string }
	Imports, TestImports, XTestImports []string
}

// name returns how the tables name a package.
func (l listing) name(importPath string) string {
	if name, own := strings.CutPrefix(importPath, module); own {
		return name
	}
	if p := l[importPath]; p != nil && p.Module != nil {
		return p.Module.Path
	}
	return importPath
}

// names returns the names of packages outside the standard library.
func (l listing) names(importPaths []string) (names []string) {
	for _, i := range importPaths {
		if p := l[i]; p == nil || !p.Standard {
			names = append(names, l.name(i))
		}
	}
	return names
}

// chain returns the packages by which one of this module reaches another package
// without passing through the standard library, or nil if it does not.
func (l listing) chain(from, to string) (chain []string) {
	start := module + from
	importer := map[string]string{start: ""}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		p := l[queue[0]]
		if p == nil || p.Standard {
			continue
		}
		for _, i := range p.Imports {
			if _, seen := importer[i]; seen {
				continue
			}
			importer[i] = p.ImportPath
			if l.name(i) == to {
				for ; i != ""; i = importer[i] {
					chain = append(chain, strings.TrimPrefix(i, module))
				}
				slices.Reverse(chain)
				return chain
			}
			queue = append(queue, i)
		}
	}
	return nil
}

// listAll lists the packages of the module on each system.
func listAll(t *testing.T) []listing {
	t.Helper()
	all := make([]listing, len(systems))
	var wg sync.WaitGroup
	for n, system := range systems {
		wg.Go(func() {
			// With -e, packages without files for a system are no error.
			list := exec.Command("go", "list", "-e", "-deps", "-test",
				"-json=ImportPath,Standard,Module,Imports,TestImports,XTestImports", module+"...")
			list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
			list.Stderr = t.Output()
			out, err := list.Output()
			if err != nil {
				t.Errorf("go list on %s: %v", system, err)
			}
			all[n] = make(listing)
			for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
				p := new(listed)
				if err := d.Decode(p); err != nil {
					t.Errorf("go list on %s: %v", system, err)
					return
				}
				// Variants that are built for a test repeat the package with other words.
				if !strings.Contains(p.ImportPath, " ") && !strings.HasSuffix(p.ImportPath, ".test") {
					all[n][p.ImportPath] = p
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// dependOnSources makes the go command run the test again, instead of taking its
// result from the cache, after any source file has changed: the go command notes
// which folders a test reads, and does not see those that go list reads.
func dependOnSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if name := d.Name(); err == nil && d.IsDir() && strings.HasPrefix(name, ".") && name != ".." {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
