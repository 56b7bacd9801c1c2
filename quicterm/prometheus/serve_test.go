package prometheus

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// A server of metrics that ends waits for those who answer, and starts no more questions.
func TestHTTPEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answering, goOn, done := make(chan bool), make(chan bool), make(chan error, 1)
	var answered atomic.Bool
	go func() {
		done <- ServeHTTP(ctx, l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(answering)
			<-goOn
			answered.Store(true)
		}))
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-answering
	cancel()
	c.Read(make([]byte, 1)) // the server has closed the connection
	close(goOn)
	if err := <-done; err != nil || !answered.Load() {
		t.Errorf("ended with %v, after the answer: %v", err, answered.Load())
	}
}
