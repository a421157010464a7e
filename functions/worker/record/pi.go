package record

import "errors"

// PILength is the number of characters of a PI.
const PILength = 26

// PI identifies an entity: 26 characters of Crockford's base 32 in capitals, like a ULID. It is
// an array, so that a million of them have no pointers. The zero PI identifies no entity.
type PI [PILength]byte

// ErrNotPI is the error for a text that is not a PI.
var ErrNotPI = errors.New("want 26 characters of 0-9 and A-Z without I, L, O and U")

// ParsePI parses a PI. It returns an error for lower case, because the API has one spelling.
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

// String returns the PI, or "" for the zero PI.
func (pi PI) String() string {
	if pi.IsZero() {
		return ""
	}
	return string(pi[:])
}

// IsZero reports whether pi is the zero PI.
func (pi PI) IsZero() bool { return pi == PI{} }
