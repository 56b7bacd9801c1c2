package forward

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A path brings what is written after a delay.
type path struct {
	delay  time.Duration
	pieces chan piece
	rest   []byte
	end    chan struct{}
	ending sync.Once
}

type piece struct {
	at time.Time
	b  []byte
}

func newPath(delay time.Duration) *path {
	return &path{delay: delay, pieces: make(chan piece, 1<<16), end: make(chan struct{})}
}

func (p *path) Write(b []byte) (int, error) {
	select {
	case p.pieces <- piece{time.Now().Add(p.delay), append([]byte(nil), b...)}:
		return len(b), nil
	case <-p.end:
		return 0, io.ErrClosedPipe
	}
}

func (p *path) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		select {
		case next := <-p.pieces:
			time.Sleep(time.Until(next.at))
			p.rest = next.b
		case <-p.end:
			return 0, io.EOF
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// A writer is closed by a path's reader.
type writer struct{ *path }

func (writer) Close() error { return nil }

func (p *path) Close() error {
	p.ending.Do(func() { close(p.end) })
	return nil
}

// A stream is as fast as what is written to it, also over a long path: its window grows, and neither end waits for it.
func TestWindowsGrow(t *testing.T) {
	for _, readSize := range []int{1000, largeBuffer} {
		synctest.Test(t, func(t *testing.T) {
			up, down := newPath(25*time.Millisecond), newPath(25*time.Millisecond)
			server, err := NewSession(up, writer{down}, false)
			if err != nil {
				t.Fatal(err)
			}
			client, err := NewSession(down, writer{up}, true)
			if err != nil {
				t.Fatal(err)
			}
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				s, err := server.Accept()
				for b := make([]byte, largeBuffer); err == nil; {
					_, err = s.Write(b)
					time.Sleep(time.Duration(len(b)) * time.Second / 12.5e6)
				}
			}()
			s, err := client.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(s, "x")
			buf, last := make([]byte, readSize), 0
			for start := time.Now(); time.Since(start) < 6*time.Second; {
				n, err := s.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				if time.Since(start) > time.Second {
					last += n
				}
			}
			if last < 0.99*5*12.5e6 {
				t.Errorf("%d bytes in 5 s, of 12.5 MB a second, by reads of %d", last, readSize)
			}
			client.Close()
			server.Close()
			<-wrote
		})
	}
}
