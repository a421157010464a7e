package archive

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	parenthesis = regexp.MustCompile(`\s*\([^()]*\)`)
	unknownPart = regexp.MustCompile(`(?i),?\s*\[[^\]]*\b(?:unknown|withdrawn)\b[^\]]*\]`)
	lifeDates   = regexp.MustCompile(`,\s*(?:ca?\.\s*)?(?:b\.\s*)?\d{4}\??\s*-?\s*(?:\d{4})?\??$`)
)

// Unidentified reports whether a name is a description of unnamed people, such as "[Unknown
// person(s)]" or "[Name withdrawn]".
func Unidentified(name string) bool {
	rest := strings.TrimSpace(unknownPart.ReplaceAllString(name, ""))
	if rest == "" {
		return true
	}
	lower := strings.ToLower(strings.Trim(rest, "[]"))
	return strings.HasPrefix(lower, "unknown person") || lower == "unknown" || lower == "unidentified"
}

// shown returns the name of a party for display, without remarks on its unknown parts. "Beave,
// [First name unknown]" becomes "Beave".
func shown(name string) string { return strings.TrimSpace(unknownPart.ReplaceAllString(name, "")) }

// plain returns the name of a person without the additions in the two name files: epithets and
// full forms in parentheses, and dates of life. For example, "Nixon, Richard M. (President)"
// and "Nixon, Richard M. (Richard Milhous), 1913-1994" both become "Nixon, Richard M.".
func plain(name string) string {
	name = lifeDates.ReplaceAllString(shown(name), "")
	name = parenthesis.ReplaceAllString(name, "")
	return strings.Trim(strings.Join(strings.Fields(name), " "), " ,")
}

// samePerson reports whether two names are forms of one name. Their surnames must be equal, and
// the given names of one must be a prefix of those of the other.
func samePerson(a, b string) bool {
	surnameA, givenA, _ := strings.Cut(plain(a), ",")
	surnameB, givenB, _ := strings.Cut(plain(b), ",")
	if !strings.EqualFold(surnameA, surnameB) {
		return false
	}
	wordsA, wordsB := words(givenA), words(givenB)
	if len(wordsA) == 0 || len(wordsB) == 0 {
		return len(wordsA) == len(wordsB)
	}
	if len(wordsA) > len(wordsB) {
		wordsA, wordsB = wordsB, wordsA
	}
	for i, w := range wordsA {
		if w != wordsB[i] {
			return false
		}
	}
	return true
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// code returns the key of an entity in cheimarros.json, made of its kind and the words of its
// label.
func code(kind, label string) string {
	return strings.Join(append([]string{kind}, words(label)...), "_")
}
