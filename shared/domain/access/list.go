package access

import (
	"errors"
	"fmt"
	"slices"
)

// Add returns a copy of tokens with one more record. It returns an error if Validate
// rejects the new list.
func Add(tokens []Token, added Token) ([]Token, error) {
	after := append(slices.Clone(tokens), added)
	if err := errors.Join(Validate(after)...); err != nil {
		return nil, fmt.Errorf("cannot add the token %q: %w", added.Name, err)
	}
	return after, nil
}

// ErrUnknown is returned by Revoke for a name that is not in the list.
var ErrUnknown = errors.New("no client token has this name")

// Revoke returns a copy of tokens without the record of that name. It returns
// ErrUnknown if there is no such record.
func Revoke(tokens []Token, name string) ([]Token, error) {
	i := slices.IndexFunc(tokens, func(t Token) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("cannot revoke %q: %w", name, ErrUnknown)
	}
	return slices.Delete(slices.Clone(tokens), i, i+1), nil
}
