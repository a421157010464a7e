package change

import (
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Precondition is the condition of a change on the stored object. The zero value requires
// nothing.
type Precondition struct {
	// Match reports whether the client accepts the version tag of the stored object; nil
	// accepts every tag. It is not called if there is no object.
	Match func(tag string) bool
	// Absent: there must be no object. Present: there must be one.
	Absent, Present bool
}

// Check returns a PreconditionFailed fault if the stored object violates the condition. what is
// the kind of object, such as job. tag is empty if there is no object.
func (p Precondition) Check(what, tag string) error {
	switch {
	case tag == "" && (p.Present || p.Match != nil):
		return fault.New(fault.PreconditionFailed, "the %s does not exist", what)
	case tag != "" && p.Absent:
		return fault.New(fault.PreconditionFailed, "the %s exists with the tag %s", what, tag)
	case tag != "" && p.Match != nil && !p.Match(tag):
		return fault.New(fault.PreconditionFailed, "the %s has changed, its tag is %s; read it again", what, tag)
	}
	return nil
}

// CheckKey returns an InvalidRequest fault for a malformed idempotency key. An empty key is no
// key.
func CheckKey(key string) error {
	printable := func(c rune) bool { return c >= ' ' && c <= '~' }
	if len(key) > limit.IdempotencyKey || strings.ContainsFunc(key, func(c rune) bool { return !printable(c) }) {
		return fault.Invalid("Idempotency-Key", "malformed Idempotency-Key, want 1 to %d printable ASCII characters", limit.IdempotencyKey)
	}
	return nil
}
