//go:build linux

package drive_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"regexp"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A command line that is run in a session's shell gives its output alone, and its status.
func Example_run() {
	ctx := context.Background()
	login, stop := serve()
	defer stop()
	start(ctx, login(), "work", "")

	line := drive.Line{Text: "echo hello; (exit 3)", Wait: true, ID: "first"}
	for range 2 { // the second time nothing is typed, because it has the same ID
		status, answer, err := drive.Run(ctx, login(), "work", line, os.Stdout)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("exit status", status, "again", answer.Again)
	}
	// Output:
	// hello
	// exit status 3 again false
	// hello
	// exit status 3 again true
}

// What is typed has an offset in the output, from which on its answer is looked for: also one that came at once.
func Example_wait() {
	ctx := context.Background()
	login, stop := serve()
	defer stop()
	start(ctx, login(), "ask", `read -r name; echo "hello $name"; sleep 1000`)

	answer, err := drive.Send(ctx, login(), "ask", drive.Input{Text: "Anna", Enter: true})
	if err != nil {
		log.Fatal(err)
	}
	match, err := drive.Wait(ctx, login(), "ask", &answer.Since, drive.Condition{
		Kind: drive.Text, Pattern: regexp.MustCompile("^hello .*"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(match.Text)
	// Output:
	// hello Anna
}

// start starts a session with a command on a terminal, and leaves it.
func start(ctx context.Context, c *client.Client, name, command string) {
	s, err := c.Attach(ctx, &wire.Attach{
		Session: name, PTY: true, Size: wire.Size{Cols: 80, Rows: 24}, Command: command,
	}, client.Streams{})
	if err != nil {
		log.Fatal(err)
	}
	s.Leave()
	s.Run(ctx)
}
