package main

import (
	"context"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// A server that names sessions cannot make the user's shell run anything after Tab.
func TestCompleteLeavesOutSyntax(t *testing.T) {
	c := &cobra.Command{Use: "test"}
	complete(c, new(options), func(context.Context, []string, *options) []string {
		return []string{
			"work", "größe-2", "$(touch x)", "`touch x`", "a b", "a;b", "a|b", "a\nb", "a\tb", "-F/tmp/x", "~root", "$HOME", "*", "'a'", `"a"`,
			`a\b`, "\x1b[2J", "a\x00", "{a,b}", "<a", "#a", "!1", "",
		}
	})
	got, _ := c.ValidArgsFunction(c, nil, "")
	if want := []string{"work", "größe-2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
