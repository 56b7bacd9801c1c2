package auth

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// DialAgent connects to an ssh agent at a unix socket or, on Windows, at a named pipe. The connection has CloseWrite too,
// which closes a pipe.
func DialAgent(ctx context.Context, path string) (net.Conn, error) {
	if isPipe(path) {
		return dialPipe(ctx, path)
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// AgentKeys returns the keys and certificates of the ssh agent at a path of [DialAgent]. The connection stays open for signing
// until the caller calls close.
func AgentKeys(path string) (keys []*UserKey, close func(), err error) {
	conn, err := DialAgent(context.Background(), path)
	if err != nil {
		return nil, nil, fmt.Errorf("ssh agent: %w", err)
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("ssh agent: %w", err)
	}
	for _, s := range signers {
		public, err := ssh.ParsePublicKey(s.PublicKey().Marshal())
		if err != nil {
			continue // an unknown type
		}
		keys = append(keys, &UserKey{
			Public: public,
			Source: "agent key " + ssh.FingerprintSHA256(public),
			signer: func() (ssh.Signer, error) { return s, nil },
			silent: true,
		})
	}
	return keys, func() { conn.Close() }, nil
}
