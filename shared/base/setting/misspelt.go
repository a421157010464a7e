package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// prefix is the prefix of the names of Sortie's variables.
const prefix = "SORTIE_"

// Misspelt returns an error that lists the misspelt variables of the environment
// ("NAME=value" or "NAME"): they start with SORTIE_, are not in known, and resemble a name
// in known. The error does not contain values. Misspelt ignores other unknown variables,
// because they may belong to another program.
func Misspelt(environ, known []string) error {
	var problems []error
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || slices.Contains(known, name) {
			continue
		}
		if meant := Nearest(name, known); meant != "" {
			problems = append(problems, fmt.Errorf("%s: unknown variable, did you mean %s?", name, meant))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// Nearest returns the name in known that an unknown name probably means. It has the same
// words in another order or case, or differs by at most 2 edits (1 if the name has up to 4
// characters after the prefix). Nearest returns "" if there is no such name.
func Nearest(name string, known []string) string {
	name = strings.TrimPrefix(name, prefix)
	best, fewest := "", 3
	if len(name) <= 4 {
		fewest = 2
	}
	for _, candidate := range known {
		short := strings.TrimPrefix(candidate, prefix)
		if slices.Equal(words(name), words(short)) {
			return candidate
		}
		if n := limit.Edits(name, short); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// words returns the parts of a name between underscores, upper-case and sorted.
func words(name string) []string {
	list := strings.Split(strings.ToUpper(name), "_")
	slices.Sort(list)
	return list
}
