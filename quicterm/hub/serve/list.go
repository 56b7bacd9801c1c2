package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quicterm/quicterm/quicterm/hub"
)

// listTime is how often the list is looked at. A list is read when it has not changed for so long: who leaves it is out
// within twice that, and the time that reading takes.
const listTime = 500 * time.Millisecond

var errEmpty = errors.New("it has no line any more, as one that is being written: to let nobody in, end the hub")

// A stamp says whether a file has changed.
type stamp struct {
	changed time.Time
	size    int64
}

// readList returns the bytes of a list, and the stamp that it had before and after they were read.
func readList(name string) ([]byte, stamp, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, stamp{}, fmt.Errorf("list: %w", err)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, stamp{}, err
	}
	if !before.Mode().IsRegular() || before.Size() > hub.MaxList {
		return nil, stamp{}, fmt.Errorf("list %s: not a file, or more than %d bytes", name, hub.MaxList)
	}
	content, err := io.ReadAll(io.LimitReader(f, hub.MaxList+1))
	if err != nil {
		return nil, stamp{}, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, stamp{}, err
	}
	if stampOf(before) != stampOf(after) || int64(len(content)) != after.Size() {
		return nil, stamp{}, fmt.Errorf("list %s is being written", name)
	}
	return content, stampOf(after), nil
}

func stampOf(info os.FileInfo) stamp { return stamp{info.ModTime(), info.Size()} }

// watchList reads the list again when it has changed, until ctx ends. One that cannot be read, or is none, changes
// nothing.
func (h *Hub) watchList(ctx context.Context) {
	var read, seen stamp // what was read last, and what was there at the last look
	ticker := time.NewTicker(listTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		info, err := os.Stat(h.config.List)
		if err != nil {
			if seen != (stamp{}) {
				h.config.Log.Error("the list is gone; the one before holds", "error", err)
			}
			seen = stamp{}
			continue
		}
		now := stampOf(info)
		if now == read {
			continue
		}
		if now != seen {
			seen = now
			continue
		}
		list, err := h.reload()
		read = now
		if err != nil {
			h.config.Log.Error("the list cannot be read; the one before holds", "error", err)
			continue
		}
		h.use(list)
	}
}

func (h *Hub) reload() (*hub.List, error) {
	content, _, err := readList(h.config.List)
	if err != nil {
		return nil, err
	}
	list, err := hub.ParseList(content)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", h.config.List, err)
	}
	if len(list.Members) == 0 && len(h.list.Load().Members) > 0 {
		return nil, fmt.Errorf("list %s: %w", h.config.List, errEmpty)
	}
	return list, nil
}

// use makes a list the one that holds, and ends the logins that it does not let in as they are.
func (h *Hub) use(list *hub.List) {
	old := h.list.Swap(list)
	h.front.expel(func(id hub.UserID, m *hub.Member) bool { return stays(old, list, id, m) })
}
