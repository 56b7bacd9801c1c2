//go:build linux

package work

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// What tools talk to, and clients of it where no tool is usual.

// randomBytes returns n bytes, always the same ones.
func randomBytes(n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{}), n)
}

// web serves HTTP: /random?n=N are random bytes.
func web(addr string) error {
	http.HandleFunc("/random", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.ParseInt(r.FormValue("n"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		io.Copy(w, randomBytes(n))
	})
	return http.ListenAndServe(addr, nil)
}

// overWebSocket opens a WebSocket and does exchanges over it for a time: one each second, or as fast as they are complete.
func overWebSocket(url, duration string, kind websocket.MessageType, open func(net.Conn) (func(n int) error, error),
	subprotocols ...string) error {
	lasts, err := time.ParseDuration(duration)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*lasts)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: subprotocols})
	if err != nil {
		return err
	}
	c := websocket.NetConn(ctx, ws, kind)
	defer c.Close()
	exchange, err := open(c)
	tick := time.Tick(time.Second)
	for n, began := 0, time.Now(); err == nil && time.Since(began) < lasts; n++ {
		if err := exchange(n); err != nil {
			return fmt.Errorf("exchange %d: %w", n, err)
		}
		<-tick
	}
	return err
}

// updates is what vite's page does: it is told of each new content of a file.
func updates(c net.Conn, file string) func(n int) error {
	messages := json.NewDecoder(c)
	return func(n int) error {
		err := os.WriteFile(file+".new", fmt.Appendf(nil, "import.meta.hot.accept(); console.log(%d)\n", n), 0o644)
		if err == nil {
			err = os.Rename(file+".new", file)
		}
		var message struct{ Type string }
		for err == nil && message.Type != "update" {
			err = messages.Decode(&message)
		}
		return err
	}
}

// A vscodeHead precedes each message between a window of VS Code and its server.
type vscodeHead struct {
	Kind   uint8
	Number uint32 // of a regular message, from 1
	Ack    uint32 // the number of the last one that has come
	Len    uint32 // of the body, in bytes
}

const vscodeQuery = "?reconnectionToken=00000000-0000-4000-8000-000000000000&reconnection=false"

// environments opens a management connection, as a window of VS Code does, and then asks for the server's environment.
func environments(c net.Conn) (exchange func(n int) error, err error) {
	const regular, control = 1, 2
	var sent, came uint32
	call := func(kind uint8, body, answer string) error {
		head := vscodeHead{Kind: kind, Ack: came, Len: uint32(len(body))}
		if kind == regular {
			sent++
			head.Number = sent
		}
		message, _ := binary.Append(nil, binary.BigEndian, head)
		if _, err := c.Write(append(message, body...)); err != nil {
			return err
		}
		for {
			if err := binary.Read(c, binary.BigEndian, &head); err != nil {
				return err
			}
			got := make([]byte, head.Len)
			if _, err := io.ReadFull(c, got); err != nil {
				return err
			}
			came = max(came, head.Number)
			if head.Kind != kind {
				continue // it only says what has come, or that its sender is there
			}
			if !strings.HasPrefix(string(got), answer) {
				return fmt.Errorf("the server answers %.200q", got)
			}
			return nil
		}
	}
	// A value is a byte for its type, then its length or the number itself, as a varint, then its content.
	value := func(kind byte, n int, content string) string {
		return string(binary.AppendUvarint([]byte{kind}, uint64(n))) + content
	}
	array := func(n int) string { return value(4, n, "") }
	text := func(s string) string { return value(1, len(s), s) }
	number := func(n int) string { return value(6, n, "") }
	const identity = `{"remoteAuthority":"ride"}`
	object := value(5, len(identity), identity)

	err = call(control, `{"type":"auth","auth":"00000000000000000000"}`, `{"type":"sign"`)
	if err == nil {
		err = call(control, `{"type":"connectionType","signedData":"","desiredConnectionType":1}`, `{"type":"ok"`)
	}
	if err == nil {
		err = call(regular, object, array(1)+number(200))
	}
	return func(n int) error {
		request := array(4) + number(100) + number(n) + text("remoteextensionsenvironment") + text("getEnvironmentData")
		return call(regular, request+object, array(2)+number(201)+number(n))
	}, err
}
