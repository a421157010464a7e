package limit

import "strings"

// Character sets of a Form.
const (
	Lower   = "abcdefghijklmnopqrstuvwxyz"
	Letters = Lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Digits  = "0123456789"
)

// Form describes an ASCII text by its characters and length. It replaces a regular expression
// with a counted repetition, which takes a worker longer to compile than the rest of its start.
type Form struct {
	// First are the characters allowed at the start of the text, Rest those after it.
	First, Rest string
	// Last are the characters allowed at the end; empty means First for a text of one
	// character, and Rest otherwise.
	Last string
	// Most is the maximum length, in bytes.
	Most int
}

// DNSLabel is the form of a label in a host name (RFC 1123): 1 to 63 lower-case letters, digits
// and hyphens, with no hyphen at the start or the end.
func DNSLabel() Form {
	return Form{First: Lower + Digits, Rest: Lower + Digits + "-", Last: Lower + Digits, Most: 63}
}

// Matches reports whether the text has the form.
func (f Form) Matches(text string) bool {
	if text == "" || len(text) > f.Most || !strings.Contains(f.First, text[:1]) {
		return false
	}
	if f.Last != "" && !strings.Contains(f.Last, text[len(text)-1:]) {
		return false
	}
	return strings.Trim(text[1:], f.Rest) == ""
}
