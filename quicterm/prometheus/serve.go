package prometheus

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// maxWatching bounds the connections of those who look at a daemon: any account may connect to
	// a loopback address.
	maxWatching = 16

	// headerTime and answerTime bound how long one of them may take.
	headerTime = 5 * time.Second
	answerTime = 3 * headerTime
)

// ServeMetrics answers a request for metrics.
func ServeMetrics(w http.ResponseWriter, r *http.Request, get func(context.Context) ([]byte, error)) {
	text, err := get(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", ContentType)
	w.Write(text)
}

// ServeHealth answers whether a daemon takes new sessions: reason says why not, or is empty.
func ServeHealth(w http.ResponseWriter, reason string) {
	if reason != "" {
		http.Error(w, reason, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// ServeHTTP answers until ctx ends, and then returns nil. It closes the listener and all connections,
// and waits for those who answer on them.
func ServeHTTP(ctx context.Context, l net.Listener, handler http.Handler) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	server := &http.Server{
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // within Serve
				connections.Add(1)
			case http.StateClosed:
				connections.Done()
			}
		},
		Handler: handler, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime,
		WriteTimeout: answerTime, IdleTimeout: answerTime,
		MaxHeaderBytes: 8 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: log.New(io.Discard, "", 0), // what those who connect do wrong is not worth a line
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	err := server.Serve(netutil.LimitListener(l, maxWatching))
	if ctx.Err() != nil {
		return nil
	}
	return err
}
