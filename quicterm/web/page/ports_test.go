package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"testing"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

// listenVariable makes the test binary listen at a port until its input ends, as a program of a session does.
const listenVariable = "QUICTERM_TEST_LISTEN"

func TestMain(m *testing.M) {
	if os.Getenv(listenVariable) == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("listens at %d\n", l.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}

// counted counts what the client says of ports.
const counted = `() => {
	const Before = Worker;
	window.portsTold = 0;
	window.Worker = class extends Before {
		constructor(...all) {
			super(...all);
			this.addEventListener("message", ({ data }) => { if (data.ports) window.portsTold++; });
		}
	};
}`

// TestPorts plays a person whose program listens at a port, and then no longer: the page says so, and what forwards it, but
// takes the place of no question.
func TestPorts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, bidi.Chromium)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.browser.Prepare(t.Context(), counted); err != nil {
		t.Fatal(err)
	}
	v, _ := d.prompt(t)
	told := func(pattern string) []string {
		t.Helper()
		said, re := "", regexp.MustCompile(pattern)
		v.until(func() bool {
			said = eval[string](v, `document.getElementById("ask").textContent`)
			return re.MatchString(said)
		}, func() string { return "the page says " + said + ", not " + pattern })
		return re.FindStringSubmatch(said)
	}
	v.do(v.page.Eval(v.ctx, `void (navigator.clipboard.writeText = async (text) => { window.copied = text; })`, nil))
	v.enter(listenVariable + "=yes " + program + "\r")
	v.await(`(?m)^listens at (\d+)$`)
	command := told(`^\S+: port (\d+) is open. In a terminal, (qt forward \S+ -L \d+:localhost:\d+) forwards it here.Copy the commandClose$`)
	port := command[1]
	v.click("#ask button")
	if got := eval[string](v, "window.copied"); got != command[2] {
		t.Errorf("copied %q, want %q", got, command[2])
	}
	told("^$")
	v.enter("\x04")
	told("^\\S+: port " + port + " is closedClose$")
	v.click("#ask button")

	v.enter("printf '\\033]52;c;dGV4dA==\\007'\r")
	told("wants to copy 4 characters: text")
	v.enter(listenVariable + "=yes " + program + "\r")
	v.until(func() bool { return eval[int](v, "window.portsTold") == 3 }, func() string { return "the port is not told" })
	told("wants to copy 4 characters: text")
	v.click("#ask button:nth-of-type(2)")
	told("is open")
}
