package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
)

const (
	recordedInto = "recorded into %s"
	failed       = "the recording %s ends here: %v"
	hasGaps      = "the recording is not complete: %d bytes of output are missing, where it has markers"
	recordsThere = "the setting record says that sessions are recorded there"
)

// An Own is the recording of a session on our terminal, if the setting record says so.
type Own struct {
	Recorder
	print func(text string) // shows a text in the session
	dir   string            // empty if the session is not recorded
}

// Prepare makes the directory of recordings: if that fails, there shall be no session that
// is not recorded.
func Prepare(settings *configs.Client, skips bool, print func(string)) (*Own, error) {
	o := &Own{print: print}
	o.Skips = skips
	if settings.Record == "" {
		return o, nil
	}
	o.dir = expandHome(settings.Record)
	o.Failed = func(err error) { print(fmt.Sprintf(failed, o.file.Name(), err)) }
	err := os.MkdirAll(o.dir, 0o700)
	if err == nil {
		err = writable(o.dir)
	}
	if err != nil {
		return nil, reach.WithHint(fmt.Errorf("%s: %w", o.dir, Reason(err)), recordsThere)
	}
	return o, nil
}

// Start begins the recording of a session that was attached.
func (o *Own) Start(s *client.Session, host string) error {
	if o.dir == "" {
		return nil
	}
	file, err := newFile(o.dir, time.Now(), s.Name(), host)
	if err == nil {
		err = o.Begin(file, Header(s, host))
	}
	if err != nil {
		return reach.WithHint(fmt.Errorf("%s: %w", o.dir, Reason(err)), recordsThere)
	}
	return nil
}

// Finish ends the recording, and says where it is.
func (o *Own) Finish(ended bool, status int) {
	if o.dir == "" {
		return
	}
	if err := o.End(ended, status); err != nil {
		reach.Say(failed, o.file.Name(), Reason(err))
		return
	}
	reach.Say(recordedInto, o.file.Name())
}

// writable returns why no file can be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".qt-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// expandHome replaces ~ at the start of a file's name.
func expandHome(file string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(file, "~/"); ok && err == nil {
		return filepath.Join(home, rest)
	}
	return file
}

// Reason returns an error of a file without its operation and name.
func Reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
