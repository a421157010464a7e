package sqlite

import "context"

// Joint is a change that is made in the transaction of another one.
type Joint interface {
	// Begin is called before the change waits for the writer.
	Begin(ctx context.Context)
	// Write makes the change after the other one, under the rules of DB.Write.
	Write(tx *Tx) error
	// End is called after the transaction, of which committed reports the result.
	End(committed bool)
}

// Join returns a context whose next Write makes the joint change too: both are written,
// or none. WriteRelaxed ignores it.
func Join(ctx context.Context, j Joint) context.Context {
	return context.WithValue(ctx, jointKey{}, &joining{j})
}

type jointKey struct{}

// joining is a joint change until a Write makes it.
type joining struct{ joint Joint }

// jointOf returns the joint change that the next Write of ctx makes; nil without one.
func jointOf(ctx context.Context) Joint {
	j, ok := ctx.Value(jointKey{}).(*joining)
	if !ok {
		return nil
	}
	joint := j.joint
	j.joint = nil
	return joint
}
