package port

import (
	"context"
	"time"
)

// Writers is a queue of the processes that write to a stream, in the order in which they
// joined. With it they do not compete for the end of the stream. The queue is advisory: a
// writer may write out of turn, and Feed.Append refuses a batch at another position.
//
// It is safe for concurrent use, by several processes. Their clocks decide the order, so they
// must differ by little. Ahead is strongly consistent.
type Writers interface {
	// Enqueue adds a writer to the queue of its stream. The writer leaves at the time until,
	// even if its process has ended. A repeated call keeps its place and sets another time.
	Enqueue(ctx context.Context, w Writer, until time.Time) error
	// Ahead returns the number of other writers before w in the queue. It is w's turn at 0,
	// whether or not w is in the queue.
	Ahead(ctx context.Context, w Writer) (int, error)
	// Leave removes a writer from the queue. It does nothing if the writer is not in the queue.
	Leave(ctx context.Context, w Writer) error
}

// Writer is a place in the queue of a stream.
type Writer struct {
	Stream string
	// Since is when the place was taken. ID distinguishes writers with the same Since: 1 to 64
	// characters of [a-z0-9].
	Since time.Time
	ID    string
}
