package flymachines

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

// limits are Fly's rate limits per action and machine, or per action and app if
// the action has no machine: one request a second with a burst of three; get
// has five a second with a burst of ten.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// mostBuckets is the largest number of remembered buckets. Above it, full
// buckets are dropped.
const mostBuckets = 1 << 12

func newLimits() *limits { return &limits{buckets: map[string]*rate.Limiter{}} }

// allow takes one request out of a bucket. It returns false if the bucket is
// empty.
func (l *limits) allow(action, app, id string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := action + "/" + app + "/" + id
	bucket, ok := l.buckets[key]
	if !ok {
		if len(l.buckets) >= mostBuckets {
			for other, b := range l.buckets {
				if b.TokensAt(now) >= float64(b.Burst()) {
					delete(l.buckets, other)
				}
			}
		}
		bucket = rate.NewLimiter(1, 3)
		if action == faults.Get {
			bucket = rate.NewLimiter(5, 10)
		}
		l.buckets[key] = bucket
	}
	return bucket.AllowN(now, 1)
}
