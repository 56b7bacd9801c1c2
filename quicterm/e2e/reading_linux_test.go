package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/work"
	"github.com/quicterm/quicterm/quicterm/client"
	driving "github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/wire"
)

var watchReading = flag.Duration("reading", 0,
	"how long TestReading watches a program that waits for no input; 0 is 1s, and not all of the programs")

// A readingCase is a program, and what its screen shows when it begins to wait for input: nothing if it never does.
// Before that, it works.
type readingCase struct {
	name, needs string // needs are the programs that it takes
	program     string // DIR is a folder with the files
	question    string
}

// Agents draw a spinner while they work, read keys all the time, and then ask.
var readingFiles = map[string]string{
	"node.js": `
process.stdin.setRawMode(true)
process.stdin.on("data", () => process.exit())
const draw = s => process.stdout.write("\x1b[?1049h\x1b[2J\x1b[H" + s)
let n = 0
const spin = setInterval(() => draw("|/-\\"[n++ % 4] + " at work"), 80)
setTimeout(() => { clearInterval(spin); draw("Allow? [y/n]") }, 1000 * process.argv[2])
`,
	"poll.py": `
import select, sys, time, tty
tty.setraw(0)
end, tick = time.time() + float(sys.argv[1]), float(sys.argv[2])
while time.time() < end:
    if select.select([0], [], [], tick)[0]: sys.exit()
    print("\x1b[2J\x1b[H" + "|/-\\"[int(10 * time.time()) % 4] + " at work", end="", flush=True)
print("\x1b[2J\x1b[HAllow? [y/n]", end="", flush=True)
while not select.select([0], [], [], tick)[0]: pass
`,
	"threads.py": `
import os, sys, threading, time, tty
tty.setraw(0)
def work():
    end = time.time() + float(sys.argv[1])
    while time.time() < end:
        time.sleep(0.1)
        print("\x1b[2J\x1b[H" + "|/-\\"[int(10 * time.time()) % 4] + " at work", end="", flush=True)
    print("\x1b[2J\x1b[HAllow? [y/n]", end="", flush=True)
    threading.Event().wait()
def read(): os.read(0, 1)
first, second = (work, read) if sys.argv[2] == "first" else (read, work)
threading.Thread(target=second, daemon=True).start()
first()
`,
	"stream.js": `
process.stdin.setRawMode(true)
process.stdin.on("data", () => process.exit())
const tool = require("child_process").spawn("sh",
  ["-c", "for i in $(seq $0); do echo word; sleep 0.1; done", process.argv[2]])
tool.stdout.on("data", d => process.stdout.write("more "))
tool.on("exit", () => process.stdout.write("\x1b[2J\x1b[HAllow? [y/n]"))
`,
	"silent.js": `
process.stdin.setRawMode(true)
process.stdin.on("data", () => process.exit())
require("net").createServer().listen(0, () => process.stdout.write("at work"))
`,
	"bash.sh": `
for i in $(seq $1); do printf '\r%s at work' "$i"; read -rsn 1 -t 0.1 && exit; done
printf '\rAllow? [y/n]'
read -rsn 1
`,
	"secret.py": "import getpass, time\nprint('begun', flush=True)\ntime.sleep(1)\ngetpass.getpass('Secret: ')\n",
	"Makefile":  "all: a b c\na b c:\n\t@for i in 1 2 3 4 5 6 7 8 9; do sh -c 'sleep 0.2; expr 1 + 1'; done; sleep 1000\n",
	"big.c":     "int main(void) { return 0; }\n",
}

var readingCases = []readingCase{
	{"bash", "bash", quiet, `^\$`},
	{"zsh", "zsh", "exec env PS1='zsh: ' zsh -f", `^zsh:`},
	{"fish", "fish", "exec env XDG_CONFIG_HOME=DIR XDG_DATA_HOME=DIR HOME=DIR fish --no-config", `[>#]$`},
	{"sh", "sh", "exec env PS1='sh: ' ENV= sh -i", `^sh:`},
	{"read of a shell", "", "sleep 1; printf 'Name? '; read -r x", `^Name\?`},
	{"read -t", "bash", "exec bash -c 'sleep 1; read -rp Name: -t 1000 x'", `^Name:`},
	{"python's input", "python3", `exec python3 -c 'import time; time.sleep(1); input("Name? ")'`, `^Name\?`},
	{"vim", "VIM", "exec VIM -u NONE -N DIR/big.c", `(?s)int main.*~`},
	{"fzf", "fzf", "seq 100 | fzf", `100/100`},
	{"sudo", "sudo setpriv", "USER sudo -k -p 'sudo asks: ' true", `sudo asks:`},
	{"git commit", "git VIM", `cd DIR && git init -q repo && cd repo && GIT_EDITOR='VIM -u NONE -N' git -c user.name=a \
		-c user.email=a@b commit --allow-empty`, `(?m)^#`},
	{"an agent in node", "node", "exec node DIR/node.js 2", `^Allow\?`},
	{"an agent that polls", "python3", "exec python3 DIR/poll.py 2 0.1", `^Allow\?`},
	{"an agent that draws in its first thread", "python3", "exec python3 DIR/threads.py 2 first", `^Allow\?`},
	{"sleep", "", "sleep 1000", ""},
	{"a pipeline", "", "sleep 1000 | cat", ""},
	{"make -j", "make", "exec make -j3 -f DIR/Makefile", ""},
	{"an agent in node at work", "node", "exec node DIR/node.js 1000", ""},
	{"an agent that prints what a program says at work", "node", "exec node DIR/stream.js 10000", ""},
	{"an agent that polls at work", "python3", "exec python3 DIR/poll.py 1000 0.1", ""},
	{"an agent that reads in its first thread at work", "python3", "exec python3 DIR/threads.py 1000 second", ""},
	{"an agent in bash at work", "bash", "exec bash DIR/bash.sh 10000", ""},
}

// moreReadingCases are looked at with -reading.
var moreReadingCases = []readingCase{
	{"read -s", "bash", "exec bash -c 'sleep 1; read -rsp Secret: x'", `^Secret:`},
	{"cat", "", "sleep 1; echo cat reads; cat", `^cat reads`},
	{"python", "python3", "exec python3 -q", `>>>`},
	{"python's getpass", "python3", "exec python3 DIR/secret.py", `Secret:`},
	{"node", "node", "exec env NODE_REPL_HISTORY= node", `(?m)^>`},
	{"sqlite3", "sqlite3", "exec sqlite3", `(?m)^sqlite>`},
	{"gdb", "gdb", "exec gdb -q -nx", `^\(gdb\)`},
	{"vim, inserting", "VIM", "exec VIM -u NONE -N +star DIR/Makefile", `-- INSERT --`},
	{"less", "less", "exec less DIR/poll.py", `(?m)^import select`},
	{"whiptail", "whiptail", "sleep 1; exec whiptail --yesno 'Go on?' 10 40", `(?s)Go on\?.*<Yes>`},
	{"dialog", "dialog", "sleep 1; exec dialog --yesno 'Go on?' 10 40", `(?s)Go on\?.*Yes`},
	{"su", "su setpriv", "USER su", `Password:`},
	{"ssh-keygen", "ssh-keygen", "exec ssh-keygen -q -t ed25519 -f DIR/made", `passphrase`},
	{"ssh, the key's passphrase", "ssh ssh-keygen",
		"ssh-keygen -q -t ed25519 -N secret -f DIR/locked && ssh-keygen -y -f DIR/locked", `passphrase`},
	{"ssh, an unknown host", sshdFile + " ssh",
		"exec ssh -F DIR/ssh_config -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=ask server", `\(yes/no/\[fingerprint\]\)\?`},
	{"git rebase -i", "git VIM", `cd DIR && git init -q rebased && cd rebased &&
		git config user.name a && git config user.email a@b &&
		git commit -q --allow-empty -m one && git commit -q --allow-empty -m two &&
		GIT_EDITOR='VIM -u NONE -N' git rebase -i --root`, `(?m)^# .*pick`},
	{"an agent that prints what a program says", "node", "exec node DIR/stream.js 20", `^Allow\?`},
	{"an agent whose clock ticks", "python3", "exec python3 DIR/poll.py 3 1", `^Allow\?`},
	{"an agent that reads in its first thread", "python3", "exec python3 DIR/threads.py 2 second", `^Allow\?`},
	{"an agent in bash", "bash", "exec bash DIR/bash.sh 20", `^Allow\?`},
	{"a loop", "", "while :; do :; done", ""},
	{"output without end", "", "yes", ""},
	{"a screen that is cleared", "", `while :; do printf '\033[2J\033[Hagain'; sleep 0.1; done`, ""},
	{"a program that ignores the terminal", "setsid", "setsid -w sleep 1000 </dev/null", ""},
	{"gcc", "gcc", "while gcc -o DIR/big DIR/big.c; do :; done", ""},
	{"tail -f", "", "tail -f DIR/big.c", ""},
	{"less +F", "less", "exec less +F DIR/big.c", ""},
	{"watch", "watch", "exec watch -n 0.5 date", ""},
	{"a shell in a tmux within", "tmux", "exec env -u TMUX tmux -f /dev/null -S DIR/tmux new sh", ""}, // its server reads
	{"a server in node", "node",
		`exec node -e 'require("net").createServer().listen(0); process.stdout.write("begun")'`, ""},
	{"python that sleeps", "python3", "exec python3 -c 'import time; time.sleep(1000)'", ""},
	{"an agent whose clock ticks at work", "python3", "exec python3 DIR/poll.py 1000 1", ""},
	{"an agent that draws in its first thread at work", "python3", "exec python3 DIR/threads.py 1000 first", ""},
}

// limits are programs that count as waiting while that for which a person waits is at work: they do wait for keys, and
// the kernel does not tell what else they do.
var limits = []readingCase{
	{"sleep on the other side of ssh", sshdFile + " ssh", "exec ssh -t -F DIR/ssh_config server sleep 1000", ""},
	{"an agent that waits for its network and draws nothing", "node", "exec node DIR/silent.js", ""},
}

// The kernel tells which program waits for input: none does that is at work, and each that asks is found.
func TestReading(t *testing.T) {
	h := newHost(t)
	h.Start()
	c, err := work.LibraryClient(h.Addr, h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if missingOf(sshdFile+" ssh") == "" {
		startSSHD(t, h, "")
	}
	for name, content := range readingFiles {
		h.Write(name, content)
	}
	asUser, vim := "", "vim"
	if os.Geteuid() == 0 {
		asUser = "setpriv --reuid 65534 --clear-groups"
	}
	if missingOf(vim) != "" {
		vim = "vim.tiny"
	}
	names := strings.NewReplacer("DIR", h.Dir, "USER", asUser, "VIM", vim)
	var all sync.WaitGroup
	var found, missed, working, wrong, known atomic.Int32
	turns := make(chan struct{}, 12) // that many at a time
	cases, watch := readingCases, time.Second
	if *watchReading > 0 {
		cases, watch = slices.Concat(readingCases, moreReadingCases, limits), *watchReading
	}
	for i, test := range cases {
		if missing := missingOf(names.Replace(test.needs)); missing != "" {
			t.Logf("%s: %s is not installed", test.name, missing)
			continue
		}
		isLimit := i >= len(readingCases)+len(moreReadingCases)
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			name := fmt.Sprintf("case%d", i)
			session, err := c.Attach(t.Context(), &wire.Attach{
				Session: name, Command: names.Replace(test.program), PTY: true, Size: wire.Size{Cols: 80, Rows: 24},
				Env: [][2]string{{"TERM", "xterm"}},
			}, client.Streams{})
			if err != nil {
				t.Error(err)
				return
			}
			session.Leave()
			session.Run(t.Context())
			defer c.Kill(t.Context(), name)
			longest := rig.Patience
			if test.question == "" && !isLimit {
				longest = watch
			}
			shown, reads, took := awaitReading(t, c, name, longest)
			t.Logf("%s: waits %v after %v", test.name, reads, took.Round(time.Millisecond))
			switch {
			case isLimit:
				known.Add(1)
			case !reads && test.question == "":
				working.Add(1)
			case !reads:
				missed.Add(1)
				t.Errorf("%s: it asks, and does not count as waiting:\n%s", test.name, shown)
			case test.question == "" || !regexp.MustCompile(test.question).MatchString(shown):
				wrong.Add(1)
				t.Errorf("%s: it counts as waiting while it works:\n%s", test.name, shown)
			default:
				found.Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("%d that wait found, %d missed; %d at work known, %d taken for waiting and %d more, as expected",
		found.Load(), missed.Load(), working.Load(), wrong.Load(), known.Load())
}

// awaitReading waits until the program of a session waits for input, and returns what the screen shows then, and how
// long it took.
func awaitReading(
	t *testing.T, c *client.Client, name string, longest time.Duration,
) (shown string, reads bool, took time.Duration) {
	x, err := driving.Open(t.Context(), c, name)
	if err != nil {
		t.Error(err)
		return "", false, 0
	}
	defer x.Close()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	began := time.Now()
	_, err = x.Wait(ctx, driving.Condition{Kind: driving.Reading})
	took = time.Since(began)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", name, err)
	}
	view, peekErr := x.Peek(t.Context())
	if peekErr != nil {
		t.Errorf("%s: %v", name, peekErr)
		return "", err == nil, took
	}
	var lines []string
	for _, row := range view.Screen.Rows(0) {
		lines = append(lines, row.Text())
	}
	shown = strings.TrimSpace(strings.Join(lines, "\n"))
	return shown, err == nil, took
}

// missingOf returns the first of some programs that is not installed.
func missingOf(programs string) string {
	for _, p := range strings.Fields(programs) {
		if _, err := exec.LookPath(p); err != nil {
			return p
		}
	}
	return ""
}
