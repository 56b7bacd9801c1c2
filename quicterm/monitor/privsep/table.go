//go:build linux || darwin

package privsep

import (
	"context"
	"fmt"
	"os"
	"reflect"
)

// A kind is what a message between the two processes is.
type kind uint8

const (
	kindReply  kind = iota + 1
	kindCancel      // of a call, which is answered nonetheless
	firstCall       // the first call of the other end's table
)

// A table has the calls of a struct such as [Calls], in the order of its fields.
type table []row

// A row is a call with its place in a struct.
type row struct {
	call
	quick bool // it is answered at once, before other frames are read: a goroutine for it would take longer
}

// A call is a *[Call] of some types.
type call interface {
	// serve decodes a request, takes its files, and answers it.
	serve(ctx context.Context, payload []byte, files []*os.File) (any, error)

	// bind makes the call ask the other process.
	bind(k kind, ask asker)
}

// An asker asks the other process, and decodes what it answers.
type asker func(ctx context.Context, k kind, request, answer any) error

// A fileTaker is a request or an answer with which descriptors come. It owns the files.
type fileTaker interface{ takeFiles([]*os.File) error }

func tableOf(calls any) (t table) {
	v := reflect.ValueOf(calls).Elem()
	for i := range v.NumField() {
		t = append(t, row{v.Field(i).Addr().Interface().(call), v.Type().Field(i).Tag.Get("call") == "quick"})
	}
	return t
}

// bind makes all calls of a table ask the other process.
func (t table) bind(ask asker) {
	for i, row := range t {
		row.bind(firstCall+kind(i), ask)
	}
}

func (t table) row(k kind) *row {
	if k < firstCall || int(k-firstCall) >= len(t) {
		return nil
	}
	return &t[k-firstCall]
}

// serve answers a call of the other process. It owns the files.
func (t table) serve(ctx context.Context, k kind, payload []byte, files []*os.File) (any, error) {
	row := t.row(k)
	if row == nil {
		closeFiles(files)
		return nil, fmt.Errorf("call %d is not known", k)
	}
	return row.serve(ctx, payload, files)
}

func (c *Call[R, A]) serve(ctx context.Context, payload []byte, files []*os.File) (any, error) {
	request := new(R)
	err := decode(payload, request)
	if taker, ok := any(request).(fileTaker); ok && err == nil {
		err = taker.takeFiles(files)
	} else {
		closeFiles(files)
	}
	if err != nil {
		return nil, err
	}
	answer, err := (*c)(ctx, request)
	if err != nil {
		return nil, err // and no answer, rather than a nil one
	}
	return answer, nil
}

func (c *Call[R, A]) bind(k kind, ask asker) {
	*c = func(ctx context.Context, request *R) (*A, error) {
		answer := new(A)
		if err := ask(ctx, k, request, answer); err != nil {
			return nil, err
		}
		return answer, nil
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
