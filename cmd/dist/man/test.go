package man

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// pagesDir is set to make the manual pages, which make man does.
var pagesDir = flag.String("man", "", "write the manual pages into this `directory`")

// pagesDate is the date of the pages, in seconds since 1970.
var pagesDate = flag.Int64("man-date", 0, "`time` of the commit that they are made from")

// Test checks that each command that the help shows has a manual page with its text, in a section of the manual. The
// flag -man of the test says where the pages are left.
func Test(t *testing.T, command func() *cobra.Command, section string) {
	dir := *pagesDir
	if dir == "" {
		dir = t.TempDir()
	}
	if err := Write(command(), section, dir, time.Unix(*pagesDate, 0).UTC()); err != nil {
		t.Fatal(err)
	}
	root := command() // Write has added to the other one
	for _, c := range root.Commands() {
		page, err := os.ReadFile(filepath.Join(dir, root.Name()+"-"+c.Name()+"."+section))
		if c.Hidden != os.IsNotExist(err) {
			t.Errorf("the page of %s, hidden %t: %v", c.Name(), c.Hidden, err)
		}
		if err == nil && !strings.Contains(string(page), c.Short) {
			t.Errorf("the page of %s lacks its short help, %q", c.Name(), c.Short)
		}
	}
}
