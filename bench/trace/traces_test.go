package trace

import (
	"path/filepath"
	"testing"
	"time"
)

// recordings are those that are kept beside the package.
func recordings(t *testing.T) (studies []*Study) {
	t.Helper()
	files, err := filepath.Glob("../traces/*.cast")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		trace, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		studies = append(studies, NewStudy(trace))
	}
	return studies
}

// What a recording says about its keys can be had: an oracle draws them, except on a screen that the
// client does not have yet.
func TestRecordings(t *testing.T) {
	for _, s := range recordings(t) {
		r := s.Replay(&oracle{u: s.truth}, Network{RTT: 200 * time.Millisecond, Loss: 0.05})
		if r.TypingDrawn < r.Typing-2 || r.Typing < 10 || r.Wrong > 0 || r.SecretsDrawn > 0 || r.Unequal > 0 {
			t.Errorf("%s: an oracle draws %d of %d typing keys, %d wrong cells, %d of %d secrets, %d unequal ends",
				s.Name, r.TypingDrawn, r.Typing, r.Wrong, r.SecretsDrawn, r.Secrets, r.Unequal)
		}
	}
}
