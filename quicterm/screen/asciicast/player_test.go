package asciicast

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// playerFile has what the parser of asciinema's player has read in the golden file.
const playerFile = "testdata/player.json"

// What the player has read is what we wrote.
func TestPlayerResult(t *testing.T) { checkPlayer(t, playerResult(t)) }

func playerResult(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(playerFile)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The player of now reads the same. QUICTERM_ASCIINEMA_PLAYER is the folder of the npm package
// asciinema-player.
func TestPlayer(t *testing.T) {
	player := os.Getenv("QUICTERM_ASCIINEMA_PLAYER")
	if player == "" {
		t.Skip("QUICTERM_ASCIINEMA_PLAYER is not set")
	}
	out, err := exec.Command("node", "testdata/player.mjs", player, goldenFile).Output()
	if err != nil {
		t.Fatal(err)
	}
	checkPlayer(t, out)
	if *update {
		if err := os.WriteFile(playerFile, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out, playerResult(t)) {
		t.Errorf("%s is not what this player reads: use -update", playerFile)
	}
}

// checkPlayer compares what a player has read in the golden file with the story.
func checkPlayer(t *testing.T, result []byte) {
	t.Helper()
	var player struct {
		Files map[string]struct {
			Cols, Rows int
			Events     [][3]any
		}
	}
	if err := json.Unmarshal(result, &player); err != nil {
		t.Fatal(err)
	}
	got := player.Files[filepath.Base(goldenFile)]
	var want [][3]any
	for _, e := range storyEvents {
		want = append(want, [3]any{float64(e.At) / float64(time.Millisecond), string(e.Code), e.Data})
	}
	if got.Cols != 80 || got.Rows != 24 || !reflect.DeepEqual(got.Events, want) {
		t.Errorf("the player reads %+v, want %v", got, want)
	}
}
