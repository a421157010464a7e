// Package r2 stores outputs in Cloudflare R2, or another store with the S3 API.
//
// Outputs is Sortie's side: two buckets, of which workers can write one.
// Uploader is the worker's side: it writes to that bucket only.
//
// Memory use does not grow with the size of an object. Failures are faults that wrap the SDK's
// error. Checksums that R2 does not support are sent only if the API requires them. Credentials
// come only from Config.
package r2

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Config configures the endpoint, buckets and credentials.
type Config struct {
	// Endpoint is the store's URL; empty is Cloudflare's for AccountID.
	Endpoint  string
	AccountID string
	// AccessKeyID and SecretAccessKey are those of an R2 API token.
	AccessKeyID, SecretAccessKey string
	// Region is the region of signatures; empty is "auto", the one of R2.
	Region string
	// Current, if set, replaces the five fields above. It is called for each
	// request, so that keys can change while the process runs, and must return
	// quickly.
	Current func(ctx context.Context) (Keys, error)
	// Uploads is the bucket that workers write to, Accepted the bucket of accepted outputs. An
	// Uploader needs only Uploads.
	Uploads, Accepted string
	// CopyLimit is the size in bytes above which Accept copies in parts of that
	// size, from 5 MiB, the smallest part, to 5 GiB, the most that one
	// CopyObject copies. 0 is 512 MiB.
	CopyLimit int64
	// HTTP sends the requests; nil is the SDK's client.
	HTTP *http.Client
	// Clock dates presigned URLs; nil is the system clock.
	Clock clock.Clock
}

// Limits of the S3 API and of R2: Amazon S3 User Guide, "Amazon S3 multipart
// upload limits".
const (
	mebi     = int64(1) << 20
	minPart  = 5 * mebi
	maxCopy  = 5 << 10 * mebi
	maxParts = 10_000
	maxKey   = 1024 // bytes
)

// copyAtOnce is a size that a store copies in a fraction of a minute, which is the time that a
// caller of Accept has.
const copyAtOnce = 512 * mebi

// check reports every problem of the configuration.
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

// pathStyle is true because every store supports path style, and host style needs DNS.
const pathStyle = true

// client returns the SDK's client of the endpoints.
func (c Config) client(endpoints *resolver, more ...func(*s3.Options)) *s3.Client {
	options := s3.Options{
		Region:             regionAuto,
		EndpointResolverV2: endpoints,
		UsePathStyle:       pathStyle,
		Credentials: aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			keys, err := endpoints.current(ctx)
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
