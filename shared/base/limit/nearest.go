package limit

import "strings"

// mostEdits is the maximum number of edits between an unknown name and a suggestion. fewEdits
// applies to names of up to shortName bytes.
const mostEdits, fewEdits, shortName = 2, 1, 4

// Nearest returns the known name that is most similar to an unknown one: it differs only in
// case, '-' and '_', or by few edits. It returns "" if no known name is similar.
func Nearest(name string, known []string) string {
	const longest = 64 // names are short, and the time grows with the square of the length
	if len(name) > longest {
		return ""
	}
	fold := strings.NewReplacer("_", "", "-", "")
	folded := fold.Replace(strings.ToLower(name))
	best, fewest := "", mostEdits+1
	if len(folded) <= shortName {
		fewest = fewEdits + 1
	}
	for _, candidate := range known {
		if n := Edits(folded, fold.Replace(strings.ToLower(candidate))); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// Edits returns the number of bytes to insert, delete, replace or swap with their neighbour to
// turn a into b.
func Edits(a, b string) int {
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
