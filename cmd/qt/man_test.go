package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/cmd/dist/man"
)

// manDir is set to make the manual pages, which make man does.
var manDir = flag.String("man", "", "write the manual pages into this `directory`")

// manDate is the date of the pages, in seconds since 1970.
var manDate = flag.Int64("man-date", 0, "`time` of the commit that they are made from")

// Each command that the help shows has a manual page with its flags and its text.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	if err := man.Write(command(), "1", dir, time.Unix(*manDate, 0).UTC()); err != nil {
		t.Fatal(err)
	}
	for _, c := range command().Commands() {
		page, err := os.ReadFile(filepath.Join(dir, "qt-"+c.Name()+".1"))
		if c.Hidden != os.IsNotExist(err) {
			t.Errorf("the page of %s, hidden %t: %v", c.Name(), c.Hidden, err)
		}
		if err == nil && !strings.Contains(string(page), c.Short) {
			t.Errorf("the page of %s lacks its short help, %q", c.Name(), c.Short)
		}
	}
}
