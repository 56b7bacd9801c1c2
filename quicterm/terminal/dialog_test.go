//go:build linux || darwin

package terminal

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A program asks in all ways, hidden and shown, with and without the end of a line, and what it
// says between comes in order.
func TestDialog(t *testing.T) {
	user, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	defer tty.Close()
	d, err := NewDialog(&TTY{tty, tty})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `
printf 'first\033[2J\r\n' >&2
printf 'Name? ' >/dev/tty; read name </dev/tty
stty -echo </dev/tty; echo 'Code' >/dev/tty; read code </dev/tty; stty echo </dev/tty
echo 'Your choice:' >/dev/tty; read choice </dev/tty
echo "$name $code $choice" >&2
printf 'end' >&2`)
	d.Attach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 10)
	done := make(chan bool)
	go func() {
		defer close(done)
		d.Relay(func(line string, shown bool) {
			if line != "" && !shown {
				heard <- line
			}
		})
	}()
	screen := bufio.NewReader(user)
	await := func(want string) {
		t.Helper()
		var seen strings.Builder
		for !strings.HasSuffix(seen.String(), want) {
			b, err := screen.ReadByte()
			if err != nil {
				t.Fatalf("%v after %q", err, seen.String())
			}
			seen.WriteByte(b)
		}
		if strings.Contains(seen.String(), "secret") {
			t.Error("a hidden answer is shown")
		}
	}
	hear := func(want string) {
		t.Helper()
		if line := <-heard; line != want {
			t.Errorf("heard %q, want %q", line, want)
		}
	}
	hear("first?[2J")
	await("Name? ")
	user.WriteString("an\x7fme\n")
	await("an\b \bme\r\n")
	hear("Code")
	awaitKeys(t, tty)
	user.WriteString("secret\n")
	hear("Your choice:")
	awaitKeys(t, tty)
	user.WriteString("2\n")
	await("2\r\n")
	hear("ame secret 2")
	await("end")
	<-done
	cmd.Wait()
	d.Close()
	await("\r\n")
	if takesKeys(t, tty) {
		t.Error("the terminal is not as it was")
	}
}

// takesKeys reports whether a dialog reads the keys of a terminal.
func takesKeys(t *testing.T, tty *os.File) bool {
	t.Helper()
	modes, err := modesOf(tty)
	if err != nil {
		t.Fatal(err)
	}
	return modes.Lflag&unix.ICANON == 0
}

func awaitKeys(t *testing.T, tty *os.File) {
	t.Helper()
	for !takesKeys(t, tty) {
		time.Sleep(time.Millisecond)
	}
}
