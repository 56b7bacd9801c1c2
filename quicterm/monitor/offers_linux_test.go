package monitor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// What strangers ask about an account with much in its authorized_keys file leaves nothing behind that
// grows with the file.
func TestOffersLeaveLittle(t *testing.T) {
	const keys, command, offers = 4, 16 << 10, 1000
	user := newProver(t, self(t))
	settings := keysOf(t, user)
	var file bytes.Buffer
	var blobs [][]byte
	for i := range keys {
		key := newUserKey(t)
		blobs = append(blobs, key.Marshal())
		fmt.Fprintf(&file, `command="%d %s" %s`, i, strings.Repeat("x", command), ssh.MarshalAuthorizedKey(key))
	}
	name := filepath.Join(filepath.Dir(settings.AuthorizedKeysFiles[0]), user.account)
	if err := os.WriteFile(name, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	m := monitorWith(t, settings)
	offer := func(i int) error {
		v, err := m.Offer(t.Context(), &privsep.Offer{Attempt: uint64(i), User: user.account, Keys: blobs})
		if err == nil && v.Refused[keys-1] != "" {
			err = fmt.Errorf("refused: %s", v.Refused[keys-1])
		}
		return err
	}
	if err := offer(-1); err != nil {
		t.Fatal(err)
	}
	before := heap()
	places := make(chan struct{}, 60) // below what waits for one account
	var wg sync.WaitGroup
	for i := range offers {
		places <- struct{}{}
		wg.Go(func() {
			if err := offer(i); err != nil {
				t.Error(err)
			}
			<-places
		})
	}
	wg.Wait()
	kept := heap() - before
	t.Logf("%d offers for a file of %d bytes leave %d bytes", offers, file.Len(), kept)
	if kept > 1<<20 {
		t.Errorf("%d offers for a file of %d bytes leave %d bytes", offers, file.Len(), kept)
	}
}
