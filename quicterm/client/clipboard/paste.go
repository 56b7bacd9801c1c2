package clipboard

import (
	"context"
	"fmt"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/files"
)

// Paste copies the picture or the file that is in the clipboard to a file of the account that the client logs in to,
// and returns its path there. It calls say with how far it is, and waits for the network until the context ends.
func Paste(ctx context.Context, c *client.Client, say func(string)) (path string, err error) {
	say("reading the clipboard")
	content, err := local.read(ctx)
	if err == nil && len(content.bytes) == 0 {
		err = errEmpty
	}
	if err != nil {
		return "", err
	}
	say("waiting for the server")
	f, stop, err := files.OpenUntil(ctx, c)
	if err != nil {
		return "", err
	}
	size, wrote := int64(len(content.bytes)), int64(0)
	name, err := f.Paste(content.suffix, content.bytes, func(n int64) {
		wrote += n
		say(fmt.Sprintf("copying the clipboard, %d %% of %.1f MB", wrote*100/size, float64(size)/1e6))
	})
	if !stop() {
		return "", context.Cause(ctx)
	}
	go func() { // no caller waits for it
		if err == nil {
			f.RemoveOldPastes(name)
		}
		f.Close()
	}()
	return name, err
}
