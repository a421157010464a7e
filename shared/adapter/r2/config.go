// Package r2 keeps outputs in Cloudflare R2, or in any other store that speaks
// the S3 API.
//
// Outputs is Sortie's side: two buckets, of which workers reach one. Uploader is
// the worker's side: it knows that one bucket and only writes.
//
// Both promise that memory does not grow with an object, and that a failure is
// a fault in our words with the SDK's error as its cause. They refuse checksums
// that R2 does not know (they are sent only where the API demands them), and
// credentials from anywhere but their Config.
package r2

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/shared/clock"
)

// Config says where the buckets are and who asks.
type Config struct {
	// Endpoint is the store's URL; empty is AccountID's at Cloudflare.
	Endpoint  string
	AccountID string
	// AccessKeyID and SecretAccessKey are an R2 API token's, as S3 calls it.
	AccessKeyID, SecretAccessKey string
	// Region is the signature's; empty is "auto", which is R2's.
	Region string
	// Current, where it is set, is asked at each request instead of the five
	// above, so that they may change while the process lives; whoever gives it
	// keeps them at hand.
	Current func(ctx context.Context) (Keys, error)
	// Uploads is the bucket that workers write to, Kept the one that they do
	// not reach. An Uploader needs Uploads alone.
	Uploads, Accepted string
	// CopyLimit is the size in bytes above which Keep copies in parts of that
	// size: 0 is 512 MiB; at least 5 MiB, the smallest part, and at most 5 GiB,
	// which is what one CopyObject takes.
	CopyLimit int64
	// HTTP makes the requests; nil is a client of the SDK's.
	HTTP *http.Client
	// Clock dates presigned URLs; nil is the host's.
	Clock clock.Clock
}

// The limits of the S3 API (and R2's): Amazon S3 User Guide, "Amazon S3
// multipart upload limits".
const (
	mebi     = int64(1) << 20
	minPart  = 5 * mebi
	maxCopy  = 5 << 10 * mebi
	maxParts = 10_000
	maxKey   = 1024 // bytes
)

// copyAtOnce is what a store copies in a fraction of the minute that the caller
// of Keep has.
const copyAtOnce = 512 * mebi

// check names every problem of the configuration at once.
func (c Config) check(accepted bool) error {
	var problems []error
	missing := func(value, name string) {
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is missing", name))
		}
	}
	if c.Current == nil {
		problems = append(problems, c.keys().problems()...)
	}
	missing(c.Uploads, "the name of the bucket for uploads")
	if accepted {
		missing(c.Accepted, "the name of the bucket for kept outputs")
		if c.Accepted != "" && c.Accepted == c.Uploads {
			problems = append(problems, errors.New("uploads and kept outputs need two buckets"))
		}
	}
	if c.CopyLimit != 0 && (c.CopyLimit < minPart || c.CopyLimit > maxCopy) {
		problems = append(problems, errors.New("the copy limit is not between 5 MiB and 5 GiB"))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("cannot use the object store: %w", err)
	}
	return nil
}

func (c Config) client(more ...func(*s3.Options)) *s3.Client {
	current := c.current()
	options := s3.Options{
		Region:             regionAuto,
		EndpointResolverV2: &resolver{current, s3.NewDefaultEndpointResolverV2()},
		// R2 and every other store know path style; host style needs DNS.
		UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			keys, err := current(ctx)
			return aws.Credentials{AccessKeyID: keys.AccessKeyID, SecretAccessKey: keys.SecretAccessKey}, err
		}),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if c.HTTP != nil {
		options.HTTPClient = c.HTTP
	}
	return s3.New(options, more...)
}
