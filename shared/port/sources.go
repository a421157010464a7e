package port

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

// Buckets lists the objects of buckets of tenants, with the credentials of the tenant and no
// others. It is safe for concurrent use.
type Buckets interface {
	// Objects returns objects with the prefix of the bucket whose keys are after a key, in the
	// order of the keys: at most MaxObjects. Each call is consistent with all earlier writes. The
	// fault is Unavailable. Its message contains no secret.
	Objects(ctx context.Context, of sensor.Bucket, by sensor.Credentials, after string) (ObjectPage, error)
}

// MaxObjects is the largest number of objects of an ObjectPage (S3: 1,000).
const MaxObjects = 1000

// ObjectPage is a part of the objects of a bucket.
type ObjectPage struct {
	Objects []sensor.Object
	// More: there are further objects after the last one.
	More bool
	// At is the time of the answer by the clock of the store, in whole seconds; zero if it is
	// unknown.
	At time.Time
}

// Queues reads the queues of tenants, with the credentials of the tenant and no others. It is safe
// for concurrent use.
type Queues interface {
	// Messages receives at most MaxMessages messages, without a wait; none if the queue has none. A
	// message that is not deleted within VisibleAfter may be received again. The fault is
	// Unavailable, as for Buckets.
	Messages(ctx context.Context, of sensor.Queue, by sensor.Credentials) ([]sensor.Message, error)
	// DeleteMessages deletes messages that were received: at most MaxMessages. It may be repeated.
	DeleteMessages(ctx context.Context, of sensor.Queue, by sensor.Credentials, messages []sensor.Message) error
}

// MaxMessages is the largest number of messages of a call (SQS: 10).
const MaxMessages = 10

// VisibleAfter is the time for which a received message is hidden.
const VisibleAfter = 2 * time.Minute
