//go:build linux || darwin

// Command qthub is a hub: hosts that nobody can dial connect to it, and people reach them through it. It sees keys, names
// of hosts, addresses and numbers of bytes, and no byte of a session.
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/hub/serve"
)

func main() {
	listen := flag.String("listen", ":443", "`address:port` to serve, by HTTPS")
	list := flag.String("list", "/etc/quicterm/hub",
		"`file` of who may log in, a line each: host NAME[,tag...] KEY or person NAME[,tag...] KEY")
	key := flag.String("key", "/var/lib/quicterm/hub_key", "`file` of the hub's private key, PEM; made if there is none")
	certificate := flag.String("certificate", "",
		"`file` of a certificate for that key and those above it, PEM; empty: the URL names the key")
	name := flag.String("name", "", "`name` or address of the hub in its URL; empty: the address of --listen")
	flag.Parse()
	if err := run(*listen, *list, *key, *certificate, *name); err != nil {
		fmt.Fprintln(os.Stderr, "qthub:", err)
		os.Exit(1)
	}
}

func run(listen, list, keyFile, certificateFile, name string) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("%q is no flag: qthub --help lists them", flag.Arg(0))
	}
	key, err := loadKey(keyFile)
	if err != nil {
		return err
	}
	certificate, err := certify(key, keyFile, certificateFile)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	bound := l.Addr().(*net.TCPAddr)
	if name == "" && bound.IP.IsUnspecified() {
		return errors.Join(errors.New("--name is needed: the name of this hub in its URL"), l.Close())
	} else if name == "" {
		name = bound.IP.String()
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return errors.Join(err, l.Close())
	}
	at := hub.Address{
		Host: strings.ToLower(name), Port: fmt.Sprint(bound.Port), Pin: hub.PinOf(leaf), Pinned: certificateFile == "",
	}
	h, err := serve.New(serve.Config{
		Names: []string{at.Host}, List: list, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		TLS: &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{*certificate},
		},
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fmt.Println(at.String())
	return h.Serve(ctx, l)
}

// loadKey reads the private key, and makes it if there is none.
func loadKey(file string) (crypto.Signer, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		var key *ecdsa.PrivateKey
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		content = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		if err := auth.WriteSecret(file, content); err != nil {
			return nil, fmt.Errorf("make the hub's key: %w", err)
		}
	} else if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("key %s: no PEM", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key %s: it cannot sign", file)
	}
	return signer, nil
}

// certify returns the certificate of a file, or one that only says the key.
func certify(key crypto.Signer, keyFile, file string) (*tls.Certificate, error) {
	if file != "" {
		c, err := tls.LoadX509KeyPair(file, keyFile)
		return &c, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0),
		NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
