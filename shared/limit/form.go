package limit

import "strings"

// Sets of characters of a Form.
const (
	Lower   = "abcdefghijklmnopqrstuvwxyz"
	Letters = Lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Digits  = "0123456789"
)

// Form is the form of a text of ASCII characters. A regular expression with a counted
// repetition does the same, and takes a worker longer to compile than the rest of its start.
type Form struct {
	// First and Rest are the characters that the text can have at its beginning and after it.
	First, Rest string
	// Last are the characters that it can have at its end; empty is First for one character,
	// and Rest.
	Last string
	// Most is the longest length, in bytes.
	Most int
}

// DNSLabel is the form of a part of a host's name (RFC 1123): 1 to 63 lower-case letters, digits
// and hyphens, the first and the last no hyphen.
func DNSLabel() Form {
	return Form{First: Lower + Digits, Rest: Lower + Digits + "-", Last: Lower + Digits, Most: 63}
}

// Matches reports whether a text has the form.
func (f Form) Matches(text string) bool {
	if text == "" || len(text) > f.Most || !strings.Contains(f.First, text[:1]) {
		return false
	}
	if f.Last != "" && !strings.Contains(f.Last, text[len(text)-1:]) {
		return false
	}
	return strings.Trim(text[1:], f.Rest) == ""
}
