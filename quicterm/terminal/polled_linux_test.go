package terminal

import (
	"os"
	"testing"

	"github.com/creack/pty"
)

// Only the same terminal is taken for another way to it: its name may have come to stand for another one.
func TestSameTerminal(t *testing.T) {
	var ttys [2]*os.File
	for i := range ttys {
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer tty.Close()
		ttys[i] = tty
	}
	way := Polled(ttys[0], os.O_WRONLY)
	if way == nil {
		t.Skip("there is no /proc")
	}
	defer way.Close()
	if !same(int(ttys[0].Fd()), int(ttys[0].Fd())) {
		t.Error("a terminal is not the same as itself")
	}
	if same(int(ttys[0].Fd()), int(ttys[1].Fd())) {
		t.Error("two terminals are the same")
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if way := Polled(null, os.O_WRONLY); way != nil {
		t.Error("a device that is no terminal is taken for one")
		way.Close()
	}
}
