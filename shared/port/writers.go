package port

import (
	"context"
	"time"
)

// Writers queue the processes that write to a stream, in the order in which they came, so that
// they need not compete for its end. The queue protects nothing: Feed.Append refuses what is
// written behind another position, so a writer may write without its turn, and after it.
//
// It is safe for concurrent use, also by several processes, whose clocks differ by little:
// they decide the order. Ahead is strongly consistent.
type Writers interface {
	// Enqueue puts a writer in the queue of its stream, until a time at the latest: then it
	// has left, also if its process has ended. A repeated call keeps its place and sets
	// another time.
	Enqueue(ctx context.Context, w Writer, until time.Time) error
	// Ahead returns how many others are before a writer in the queue. It has its turn if
	// there is no other, whether or not it is in the queue itself.
	Ahead(ctx context.Context, w Writer) (int, error)
	// Leave removes a writer from the queue. It does nothing if it has left.
	Leave(ctx context.Context, w Writer) error
}

// Writer is a place in the queue of a stream.
type Writer struct {
	Stream string
	// Since is when it was taken, ID what distinguishes it from others of the same moment: 1
	// to 64 characters of [a-z0-9].
	Since time.Time
	ID    string
}
