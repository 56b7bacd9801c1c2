package session

import (
	"reflect"
	"testing"
	"time"
)

// A frame of a terminal that memory has changed in the log is given up as one that has left it: no carrier could bring it.
func TestDamagedFrame(t *testing.T) {
	w := newWorld(t, 1)
	w.takeSnapshots()
	server, client := w.ends[1], w.ends[0]
	l := w.connect()
	w.append(1, 10)
	w.settle(time.Minute)
	w.cut(l)
	for range 3 {
		w.append(1, 10)
	}
	b, _ := server.ring.Slice(2, 1)
	b[len(b)-5] ^= 1
	w.connect()
	w.append(0, 1)
	w.settle(time.Minute)
	if want := []Gap{{From: 2, To: 4, Bytes: 30, Snapshot: snapshotOf(5)}}; !reflect.DeepEqual(client.lost, want) {
		t.Errorf("lost %+v, want %+v", client.lost, want)
	}
}
