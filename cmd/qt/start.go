package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// start starts a session without attaching to it, and prints its name. It takes none of the output, and so the server
// keeps that, and the exit status, for the client that attaches first.
func start(ctx context.Context, a *reach.Access, host string, opts *options, req *wire.Attach) error {
	s, err := a.Client.Attach(ctx, req, client.Streams{})
	if err != nil {
		return err
	}
	abandon(ctx, s)
	if !opts.json {
		_, err := fmt.Println(s.Name())
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Host string `json:"host"`
	}{s.ID().String(), s.Name(), host})
}

// parseEnv returns the variables that are written as NAME=VALUE.
func parseEnv(texts []string) (env [][2]string, err error) {
	if len(texts) > wire.MaxEnv {
		return nil, fmt.Errorf("--env is given %d times, and a session takes %d variables", len(texts), wire.MaxEnv)
	}
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("--env %s: write it as NAME=VALUE", text)
		}
		env = append(env, [2]string{name, value})
	}
	return env, nil
}

// parseSize returns the size of a terminal that is written as COLUMNSxROWS.
func parseSize(text string) (wire.Size, error) {
	cols, rows, _ := strings.Cut(text, "x")
	c, colsErr := strconv.ParseUint(cols, 10, 16)
	r, rowsErr := strconv.ParseUint(rows, 10, 16)
	if colsErr != nil || rowsErr != nil || c == 0 || r == 0 {
		return wire.Size{}, fmt.Errorf("--size %s: write it as columns and rows, such as 80x24", text)
	}
	return wire.Size{Cols: uint16(c), Rows: uint16(r)}, nil
}
