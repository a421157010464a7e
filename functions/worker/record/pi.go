package record

import "errors"

// PILength is the number of characters of a PI.
const PILength = 26

// PI names an entity: 26 characters of Crockford's base 32, written in
// capitals, as a ULID is. It is an array so that a million of them cost no
// pointers. The zero PI names nothing.
type PI [PILength]byte

// ErrNotPI is the answer to a text that is no PI.
var ErrNotPI = errors.New("a PI has 26 characters of 0-9 and A-Z without I, L, O and U")

// ParsePI reads a PI. Lower case is refused: the API knows one spelling.
func ParsePI(text string) (PI, error) {
	if len(text) != PILength {
		return PI{}, ErrNotPI
	}
	var pi PI
	for i := range PILength {
		c := text[i]
		digit := c >= '0' && c <= '9'
		letter := c >= 'A' && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U'
		if !digit && !letter {
			return PI{}, ErrNotPI
		}
		pi[i] = c
	}
	return pi, nil
}

// String is the PI as it is written; empty for the zero PI.
func (pi PI) String() string {
	if pi.IsZero() {
		return ""
	}
	return string(pi[:])
}

// IsZero says that pi names nothing.
func (pi PI) IsZero() bool { return pi == PI{} }
