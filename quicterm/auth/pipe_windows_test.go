package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/sys/windows"
)

// listenPipe makes an instance of a named pipe.
func listenPipe(t *testing.T, name string) *os.File {
	t.Helper()
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := windows.CreateNamedPipe(path, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, 0, 1, 4096, 4096, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(h), name)
}

// The agent of Windows has a named pipe. Both ways of a connection to it work at a time, it can be given up, and it waits
// for a pipe that is busy.
func TestAgentAtPipe(t *testing.T) {
	name := fmt.Sprintf(`\\.\pipe\quicterm-test-%d`, os.Getpid())
	if _, _, err := AgentKeys(name); err == nil {
		t.Error("there is an agent before one listens")
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: private, Comment: "mine"}); err != nil {
		t.Fatal(err)
	}
	server := listenPipe(t, name)
	served := make(chan error, 1)
	go func() { served <- agent.ServeAgent(keys, server) }()
	found, closeAgent, err := AgentKeys(name)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d keys, %v", len(found), err)
	}
	signer, err := found[0].Signer()
	if err != nil {
		t.Fatal(err)
	}
	signed := []byte("signed")
	signature, err := signer.Sign(rand.Reader, signed)
	if err == nil {
		err = found[0].Public.Verify(signed, signature)
	}
	if err != nil {
		t.Error(err)
	}

	again := make(chan error, 1)
	go func() {
		c, err := DialAgent(t.Context(), name)
		if err == nil {
			c.Close()
		}
		again <- err
	}()
	time.Sleep(10 * pipePause) // for it to find that the pipe is busy
	closeAgent()
	<-served
	server.Close()
	next := listenPipe(t, name)
	if err := <-again; err != nil {
		t.Errorf("a busy pipe: %v", err)
	}
	next.Close()

	server = listenPipe(t, name)
	defer server.Close()
	c, err := DialAgent(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(c, make([]byte, 3))
		read <- err
	}()
	go io.CopyN(server, server, 3)
	time.Sleep(10 * pipePause) // for it to read
	if _, err := c.Write([]byte("abc")); err != nil {
		t.Error(err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	c.SetDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("after a time limit: %v", err)
	}
	c.Close()
}
