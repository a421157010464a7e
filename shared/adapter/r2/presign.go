package r2

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
)

// presigner are the S3 operations that Outputs presigns.
type presigner interface {
	PresignGetObject(context.Context, *s3.GetObjectInput, ...func(*s3.PresignOptions)) (*v4.PresignedHTTPRequest, error)
	PresignPutObject(context.Context, *s3.PutObjectInput, ...func(*s3.PresignOptions)) (*v4.PresignedHTTPRequest, error)
}

// datedBy starts signatures at the clock's time.
func datedBy(clock clock.Clock) func(*s3.PresignOptions) {
	return func(options *s3.PresignOptions) {
		if clock != nil {
			options.Presigner = dated{clock, v4.NewSigner(func(o *v4.SignerOptions) {
				o.DisableURIPathEscaping = true // S3 signs the path as it is
			})}
		}
	}
}

type dated struct {
	clock clock.Clock
	s3.HTTPPresignerV4
}

// PresignHTTP signs with the clock's time instead of the SDK's.
func (d dated) PresignHTTP(
	ctx context.Context, keys aws.Credentials, r *http.Request, payload, service, region string, _ time.Time,
	options ...func(*v4.SignerOptions),
) (string, http.Header, error) {
	return d.HTTPPresignerV4.PresignHTTP(ctx, keys, r, payload, service, region, d.clock.Now(), options...)
}

// PresignGet implements port.Outputs.
func (o *Outputs) PresignGet(ctx context.Context, key, disposition, contentType string, ttl time.Duration) (string, error) {
	if err := checkTTL(ttl); err != nil {
		return "", err
	}
	get := &s3.GetObjectInput{
		Bucket: &o.accepted, Key: &key, ResponseContentDisposition: &disposition, ResponseContentType: &contentType,
	}
	signed, err := o.sign.PresignGetObject(ctx, get, s3.WithPresignExpires(ttl))
	if err != nil {
		return "", named(err, "sign a download")
	}
	return signed.URL, nil
}

// PresignPut implements port.Outputs. The URL requires that Content-Type.
func (o *Outputs) PresignPut(ctx context.Context, key, contentType string, ttl time.Duration) (string, error) {
	if err := checkTTL(ttl); err != nil {
		return "", err
	}
	put := &s3.PutObjectInput{Bucket: &o.uploads, Key: &key}
	if contentType != "" {
		put.ContentType = &contentType
	}
	signed, err := o.sign.PresignPutObject(ctx, put, s3.WithPresignExpires(ttl))
	if err != nil {
		return "", named(err, "sign an upload")
	}
	return signed.URL, nil
}

// checkTTL checks the limits of signatures of version 4.
func checkTTL(ttl time.Duration) error {
	if ttl < time.Second || ttl > 7*24*time.Hour {
		return fault.Invalid("ttl", "a presigned URL lives from 1 second to 7 days")
	}
	return nil
}
