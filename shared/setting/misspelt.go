package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/limit"
)

// prefix begins the names of Sortie's variables.
const prefix = "SORTIE_"

// Misspelt reports the variables of the environment ("NAME=value" or "NAME") that
// begin with SORTIE_, are not in known, and resemble a name in known. The error joins
// all of them; it does not contain values. Other unknown variables may belong to
// another program and are no problem.
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

// Nearest returns the name in known that was probably meant by an unknown one: it has
// the same words in another order, or differs by at most 2 edits (1 in a name of up
// to 4 characters after the prefix). It returns "" if none resembles it.
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

// words are the parts of a name between underscores, upper-case and sorted.
func words(name string) []string {
	list := strings.Split(strings.ToUpper(name), "_")
	slices.Sort(list)
	return list
}
