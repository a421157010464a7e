package sqlite

import "context"

// Joint is a change that is made in the transaction of another change.
type Joint interface {
	// Begin is called before the change waits for the writer.
	Begin(ctx context.Context)
	// Write makes the change after the other change, under the rules of DB.Write.
	Write(tx *Tx) error
	// End is called after the transaction. committed reports its result.
	End(committed bool)
}

// Join returns a context whose next Write also makes the joint change. Either both are
// committed or neither. WriteRelaxed ignores it.
func Join(ctx context.Context, j Joint) context.Context {
	return context.WithValue(ctx, jointKey{}, &pendingJoint{j})
}

type jointKey struct{}

// pendingJoint contains a joint change until a Write executes it.
type pendingJoint struct{ joint Joint }

// jointOf removes and returns the joint change of ctx, or nil if a Write has taken it.
func jointOf(ctx context.Context) Joint {
	j, ok := ctx.Value(jointKey{}).(*pendingJoint)
	if !ok {
		return nil
	}
	joint := j.joint
	j.joint = nil
	return joint
}
