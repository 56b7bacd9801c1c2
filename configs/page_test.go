package configs

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/configuration.md again")

// docs/configuration.md says what the comments in the sample files say.
func TestConfigurationPage(t *testing.T) {
	const file = "../docs/configuration.md"
	page := configurationPage()
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s differs from qt.toml and qtd.toml: make docs writes it again", file)
	}
}

func configurationPage() string {
	return "# Configuration\n\n" +
		"<!-- Made by make docs from configs/qt.toml and configs/qtd.toml: change those. -->\n\n" +
		"No setting is needed. A file has only those that differ from their defaults, which this page shows. An unknown\n" +
		"setting and a wrong value are errors that name the file and the line. Durations have units (`90s`, `1h30m`), and so\n" +
		"have sizes (`512KiB`, `64MiB`).\n\n" +
		"## qt, the client\n\n" + settingsPage(SampleClient) +
		"\n## qtd, the daemon\n\n" + settingsPage(SampleServer)
}

// settingsPage returns a sample file as Markdown: each paragraph's comment, then its settings.
func settingsPage(sample string) string {
	var page strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(sample), "\n\n") {
		var text, settings, names []string
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSuffix(line, "\n")
			if comment, ok := strings.CutPrefix(line, "#"); ok {
				text = append(text, markdown(strings.TrimSpace(comment)))
				continue
			}
			settings = append(settings, line)
			name, _, _ := strings.Cut(line, " =")
			names = append(names, "`"+name+"`")
		}
		if i > 0 {
			page.WriteString("\n")
		}
		if len(names) > 0 {
			fmt.Fprintf(&page, "### %s\n\n", strings.Join(names, ", "))
		}
		fmt.Fprintln(&page, strings.Join(text, "\n"))
		if len(settings) > 0 {
			fmt.Fprintf(&page, "\n```toml\n%s\n```\n", strings.Join(settings, "\n"))
		}
	}
	return page.String()
}

var (
	// literal is what a comment quotes, and what it says of settings and files by name.
	literal = regexp.MustCompile(`"[^"]*"|%\w|[\w~/.<>$-]*[_/][\w/.<>*-]+|\bqtd?\.toml\b`)
	escaped = strings.NewReplacer("*", `\*`, "<", `\<`, "~", `\~`)
)

// markdown returns a comment as Markdown.
func markdown(comment string) string {
	var b strings.Builder
	end := 0
	for _, at := range literal.FindAllStringIndex(comment, -1) {
		word := strings.TrimRight(comment[at[0]:at[1]], ".")
		b.WriteString(escaped.Replace(comment[end:at[0]]))
		b.WriteString("`" + word + "`")
		end = at[0] + len(word)
	}
	b.WriteString(escaped.Replace(comment[end:]))
	return b.String()
}
