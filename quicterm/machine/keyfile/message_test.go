//go:build linux || darwin

package keyfile

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

const goodAnswer = `{"Allowed":[{"Command":"x","NoPTY":true}],"Verdicts":[{"Allowed":1},{"Refused":"no"}],"Problems":"none"}`

// An answer that is not exactly what a child of ours says is refused as a whole.
func TestBadAnswers(t *testing.T) {
	if got := verdicts(readAnswer(strings.NewReader(goodAnswer), 2)); got != "<x>; no: none" {
		t.Errorf("got %q", got)
	}
	for n := range goodAnswer { // cut anywhere
		if got := verdicts(readAnswer(strings.NewReader(goodAnswer[:n]), 2)); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: got %q", goodAnswer[:n], got)
		}
	}
	long := strings.Repeat("x", maxReason+1)
	for _, answer := range []string{
		goodAnswer + "x", goodAnswer + goodAnswer, `null`, `[]`, `{}`, strings.Repeat(" ", maxAnswer) + goodAnswer,
		strings.Replace(goodAnswer, `{"Allowed":1}`, `{"Allowed":2}`, 1),
		strings.Replace(goodAnswer, `{"Allowed":1}`, `{"Allowed":-1}`, 1),
		strings.Replace(goodAnswer, `{"Allowed":1}`, `{"Allowed":0}`, 1),
		strings.Replace(goodAnswer, `{"Allowed":1}`, `{"Allowed":1,"Refused":"x"}`, 1),
		strings.Replace(goodAnswer, `{"Allowed":1}`, `{"Allowed":1},{"Allowed":1}`, 1),
		strings.Replace(goodAnswer, `{"Allowed":1},`, ``, 1),
		strings.Replace(goodAnswer, `"no"`, `"`+long+`"`, 1),
		strings.Replace(goodAnswer, `"none"`, `"`+long+`"`, 1),
		strings.Replace(goodAnswer, `"x"`, `"a\u0000"`, 1),
		strings.Replace(goodAnswer, `"x"`, `"`+strings.Repeat("x", 64<<10+1)+`"`, 1),
		strings.Replace(goodAnswer, `[{"C`, `[{},{},{"C`, 1),
		strings.Replace(goodAnswer, `[{"C`, `[1,{"C`, 1),
	} {
		if got := verdicts(readAnswer(strings.NewReader(answer), 2)); got != "error: "+errAnswer.Error() {
			t.Errorf("%.100s: got %q", answer, got)
		}
	}
	if got := verdicts(readAnswer(strings.NewReader(`{"Problems":"limit: not permitted"}`), 2)); got != "error: limit: not permitted" {
		t.Errorf("a child that failed: got %q", got)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(goodAnswer), 2)
	f.Add([]byte(`{"Problems":"x"}`), 1)
	f.Add([]byte(`{"Verdicts":[{"Refused":"\ud800"}]}`), 1)
	f.Fuzz(func(t *testing.T, b []byte, queries int) {
		queries = max(queries%65, 0)
		vs, err := readAnswer(strings.NewReader(string(b)), queries)
		if err != nil {
			return
		}
		if len(vs) != queries {
			t.Fatalf("%d verdicts of %d queries", len(vs), queries)
		}
		for _, v := range vs {
			if (v.Allowed == nil) == (v.Refused == nil) || v.Allowed != nil && !v.Allowed.Valid() {
				t.Errorf("verdict %+v", v)
			}
		}
	})
}

// Texts of errors are cut and valid.
func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "a\xff": "a?", strings.Repeat("ä", maxReason): strings.Repeat("ä", maxReason/2),
		"x" + strings.Repeat("ä", maxReason): "x" + strings.Repeat("ä", maxReason/2-1),
	} {
		if got := short(text); got != want {
			t.Errorf("%.20q: got %.20q of %d bytes", text, got, len(got))
		}
	}
}

// A disk that does not give the file of an enrolled key says nothing about the key; a file that is strange refuses it.
func TestEnrolledKeyUnread(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, syscall.ELOOP: false, errors.New("others may use it"): false, syscall.EIO: true, syscall.ESTALE: true,
	} {
		if err != nil {
			err = fmt.Errorf("keys: %w", err)
		}
		if got := (enrolledKey{err: err}).unread(); got != want {
			t.Errorf("%v: unread %v, want %v", err, got, want)
		}
	}
}
