package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Filters are what a session must be to be listed, all of them: the values of --filter.
type filters []filter

// A filter is FIELD=PATTERN. In the pattern, * stands for any characters and ? for one.
type filter struct {
	field   func(*sessionJSON) string
	pattern *regexp.Regexp
}

// filterFields are the fields that --filter knows, by their names in JSON.
var filterFields = map[string]func(*sessionJSON) string{
	"name":    func(s *sessionJSON) string { return s.Name },
	"state":   func(s *sessionJSON) string { return s.State },
	"runs":    func(s *sessionJSON) string { return s.Runs },
	"waits":   func(s *sessionJSON) string { return s.Waits },
	"command": func(s *sessionJSON) string { return s.Command },
}

// filterValues are all values of the fields that have few.
var filterValues = map[string][]string{
	"state": {
		wire.PhaseAttached.String(), wire.PhaseDetached.String(), wire.PhaseExited.String(), wire.PhaseLost.String(),
	},
	"waits": {wire.WaitsPrompt.String(), wire.WaitsInput.String(), wire.WaitsNothing.String()},
}

func parseFilters(texts []string) (list filters, err error) {
	for _, text := range texts {
		name, glob, found := strings.Cut(text, "=")
		if !found {
			return nil, fmt.Errorf("--filter %s: a filter is FIELD=PATTERN, such as waits=input", text)
		}
		field := filterFields[name]
		if field == nil {
			return nil, fmt.Errorf("--filter %s: there is no field %q: filters are for name, state, runs, waits and command",
				text, name)
		}
		pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob))
		f := filter{field, regexp.MustCompile("(?s)^" + pattern + "$")}
		if values := filterValues[name]; values != nil && !slices.ContainsFunc(values, f.pattern.MatchString) {
			return nil, fmt.Errorf("--filter %s: the field %s is one of %s", text, name, strings.Join(values, ", "))
		}
		list = append(list, f)
	}
	return list, nil
}

// of returns the sessions that match.
func (list filters) of(sessions []sessionJSON) []sessionJSON {
	return slices.DeleteFunc(sessions, func(s sessionJSON) bool {
		return slices.ContainsFunc(list, func(f filter) bool { return !f.pattern.MatchString(f.field(&s)) })
	})
}
