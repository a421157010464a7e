package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
		if n := edits(name, short); n < fewest {
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

// edits is the number of characters to insert, delete, replace or swap with their
// neighbour to make a from b.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
