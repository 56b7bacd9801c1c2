//go:build js

package main

import (
	"errors"
	"syscall/js"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/web/link"
)

// deviceKey returns the key of this browser. The page sends the private one as a CryptoKey, of which nothing can be read.
func deviceKey(v js.Value) (ssh.Signer, error) {
	public, private := bytesOf(v.Get("public")), v.Get("key")
	return link.NewDeviceKey(public, func(data []byte) ([]byte, error) {
		how := js.ValueOf(map[string]any{"name": "ECDSA", "hash": "SHA-256"})
		array := js.Global().Get("Uint8Array").New(len(data))
		js.CopyBytesToJS(array, data)
		signature, err := await(js.Global().Get("crypto").Get("subtle").Call("sign", how, private, array))
		if err != nil {
			return nil, err
		}
		return bytesOf(signature), nil
	})
}

// bytesOf returns the bytes in an ArrayBuffer.
func bytesOf(buffer js.Value) []byte {
	array := js.Global().Get("Uint8Array").New(buffer)
	b := make([]byte, array.Length())
	js.CopyBytesToGo(b, array)
	return b
}

// await waits for the value of a promise.
func await(promise js.Value) (v js.Value, err error) {
	done := make(chan struct{})
	then := js.FuncOf(func(_ js.Value, args []js.Value) any {
		v = args[0]
		close(done)
		return nil
	})
	defer then.Release()
	failed := js.FuncOf(func(_ js.Value, args []js.Value) any {
		err = errors.New(args[0].Call("toString").String())
		close(done)
		return nil
	})
	defer failed.Release()
	promise.Call("then", then, failed)
	<-done
	return v, err
}
