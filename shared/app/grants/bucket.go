package grants

import "context"

// WorkerBucket is the bucket of the export contract with the workers' credentials.
type WorkerBucket struct {
	AccountID       string
	AccessKeyID     string
	SecretAccessKey string
	Bucket          string
	// Endpoint is set if R2 is not Cloudflare's, Region if that store has regions.
	Endpoint string
	Region   string
}

// BucketSource returns the bucket for the next launch. Its keys may change while
// the process lives.
type BucketSource func(ctx context.Context) (WorkerBucket, error)

// FixedBucket returns a BucketSource whose keys never change.
func FixedBucket(b WorkerBucket) BucketSource {
	return func(context.Context) (WorkerBucket, error) { return b, nil }
}
