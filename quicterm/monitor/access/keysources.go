//go:build linux || darwin

package access

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// keyFile returns the path of a file of an account that a pattern names. An unknown token in it is an error.
func keyFile(pattern string, a *account.Account) (string, error) {
	uid := strconv.FormatUint(uint64(a.UID), 10)
	file, err := sshd.Expand(pattern, map[byte]string{'h': a.Home, 'u': a.Name, 'U': uid})
	if err == nil && !filepath.IsAbs(file) {
		file = filepath.Join(a.Home, file)
	}
	return file, err
}

func (by claim) queries(keys [][]byte) (queries []auth.Query) {
	for _, key := range keys {
		queries = append(queries, auth.Query{Key: key, From: by.from, Proven: by.proven})
	}
	return queries
}

// readKeys returns what the files of an account allow keys, and the authorities of certificates.
func (d *Decider) readKeys(
	ctx context.Context, by claim, from *sshd.Sources, keys [][]byte,
) ([]auth.Verdict, error) {
	a, sources := by.account, &keyfile.Sources{CAAlgorithms: from.CAAlgorithms, Lax: from.Lax, Check: by.check}
	var unread, unreadCA error // what could not be asked, of all keys, and of certificates
	for _, pattern := range from.Files {
		file, err := keyFile(pattern, a)
		if err != nil { // those before it count nevertheless
			unread = fmt.Errorf("%w: AuthorizedKeysFile %q: %w", keyfile.ErrUnread, pattern, err)
			break
		}
		sources.Files = append(sources.Files, file)
	}
	if len(sources.Files) > 0 && filepath.IsAbs(a.Home) {
		sources.Enrolled = enrolled.Dir(a.Home)
	}
	switch {
	case from.Authorities == "":
	case from.Principals == "" && from.PrincipalsProgram != "":
		unreadCA = errors.New("AuthorizedPrincipalsCommand is not run: certificates need AuthorizedPrincipalsFile")
	default:
		authorities, _, err := auth.ReadFile(from.Authorities, maxAuthorities)
		if err != nil {
			err = fmt.Errorf("TrustedUserCAKeys: %w", err)
		} else if from.Principals != "" {
			if sources.Principals, err = keyFile(from.Principals, a); err != nil {
				err = fmt.Errorf("AuthorizedPrincipalsFile %q: %w", from.Principals, err)
			}
		}
		if err != nil { // the files of the account count nevertheless
			unreadCA = fmt.Errorf("%w: %w", keyfile.ErrUnread, err)
		} else {
			sources.Authorities = &keyfile.Authorities{Name: from.Authorities, Keys: authorities}
		}
	}
	verdicts, err := d.keyFiles.Authorize(ctx, a, sources, by.queries(keys)...)
	for i := range verdicts {
		switch {
		case verdicts[i].Allowed != nil:
		case unreadCA != nil && auth.Certified(keys[i]):
			verdicts[i].Refused = unreadCA
		case unread != nil:
			verdicts[i].Refused = unread
		}
	}
	return verdicts, err
}

// maxAuthorities bounds a file of authorities in bytes: thousands of them.
const maxAuthorities = 1 << 20

// askProgram asks the program of a policy (AuthorizedKeysCommand of sshd) for the keys that no file allows, and
// changes the verdicts about them. As sshd, it does not ask about keys after too many that are refused.
func (d *Decider) askProgram(
	ctx context.Context, by claim, policy *sshd.Policy, keys [][]byte, verdicts []auth.Verdict,
) {
	line := policy.Sources.Program
	if line == "" {
		return
	}
	perKey := strings.Contains(line, "%k") || strings.Contains(line, "%f") || strings.Contains(line, "%t")
	var batch []int
	ask := func() {
		if len(batch) == 0 {
			return
		}
		var blobs [][]byte
		for _, i := range batch {
			blobs = append(blobs, keys[i])
		}
		got, err := d.runProgram(ctx, by, policy, blobs)
		for n, i := range batch {
			if err != nil {
				verdicts[i] = auth.Verdict{Refused: fmt.Errorf("%w: AuthorizedKeysCommand: %w", keyfile.ErrUnread, err)}
			} else if got[n].Allowed != nil {
				verdicts[i] = got[n]
			} else if errors.Is(got[n].Refused, keyfile.ErrProgram) {
				verdicts[i].Refused = fmt.Errorf("%w; AuthorizedKeysCommand: %w", verdicts[i].Refused, got[n].Refused)
			}
		}
		batch = nil
	}
	tried := by.tried
	for i := range verdicts {
		if tried >= policy.MaxTries() {
			break
		}
		key, err := auth.ParseUserKey(keys[i])
		refused := err != nil || policy.AcceptKey(key) != nil
		if !refused && verdicts[i].Allowed == nil {
			if batch = append(batch, i); perKey {
				ask()
			}
		}
		if refused || perKey && verdicts[i].Allowed == nil {
			tried++
		}
	}
	ask()
}

// runProgram runs the program of a policy once, and returns what it allows keys. If its arguments
// name a key, that is the first one.
func (d *Decider) runProgram(
	ctx context.Context, by claim, policy *sshd.Policy, keys [][]byte,
) ([]auth.Verdict, error) {
	from := &policy.Sources
	tokens, err := keyTokens(by.account, keys[0])
	if err != nil {
		return nil, err
	}
	p, err := d.program(ctx, by.account, from.Program, from.ProgramAccount, tokens)
	if err != nil {
		return nil, err
	}
	if len(p.Argv) == 1 {
		p.Argv = append(p.Argv, by.account.Name)
	}
	sources := &keyfile.Sources{CAAlgorithms: from.CAAlgorithms, Program: p, Check: by.check}
	return d.keyFiles.Authorize(ctx, by.account, sources, by.queries(keys)...)
}

func keyTokens(a *account.Account, blob []byte) (map[byte]string, error) {
	key, err := auth.ParseUserKey(blob)
	if err != nil {
		return nil, err
	}
	return map[byte]string{
		'h': a.Home, 'u': a.Name, 'U': strconv.FormatUint(uint64(a.UID), 10),
		'f': privsep.Fingerprint(blob), 'k': base64.StdEncoding.EncodeToString(blob), 't': key.Type(),
	}, nil
}

func (d *Decider) program(
	ctx context.Context, a *account.Account, line, user string, tokens map[byte]string,
) (*keyfile.Program, error) {
	user, err := sshd.Expand(user, map[byte]string{'u': a.Name})
	if err != nil {
		return nil, fmt.Errorf("account of the program: %w", err)
	}
	as, err := d.names.Lookup(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("account %q of the program: %w", user, err)
	}
	argv, err := sshd.ProgramArgs(line, tokens)
	if err != nil {
		return nil, err
	}
	return &keyfile.Program{Argv: argv, Account: as}, nil
}
