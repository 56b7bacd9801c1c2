package asciicast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"
)

// playerFile has what the parser of asciinema's player has read in the golden files.
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
	out, err := exec.Command("node", "testdata/player.mjs", player, goldenFile(2), goldenFile(3)).Output()
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

// checkPlayer compares what a player has read in the golden files with the story.
func checkPlayer(t *testing.T, result []byte) {
	t.Helper()
	var player struct {
		Files map[string]struct {
			Cols, Rows    int
			IdleTimeLimit float64
			Events        [][3]any
		}
	}
	if err := json.Unmarshal(result, &player); err != nil {
		t.Fatal(err)
	}
	for version := 2; version <= 3; version++ {
		got := player.Files[fmt.Sprintf("story-v%d.cast", version)]
		var want [][3]any
		for _, e := range wantEvents(version) {
			want = append(want, [3]any{float64(e.At) / float64(time.Millisecond), string(e.Code), e.Data})
		}
		if got.Cols != 80 || got.Rows != 24 || got.IdleTimeLimit != 2.5 || !reflect.DeepEqual(got.Events, want) {
			t.Errorf("version %d: the player reads %+v, want %v", version, got, want)
		}
	}
}
