package r2

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// presigner creates the same URLs as the SDK's presign client, with only the SDK's signer. The
// client assembles its middleware for each URL, which takes 15 times as many allocations as the
// signature.
type presigner struct {
	endpoints *resolver
	signer    *v4.Signer
	clock     clock.Clock
}

func newPresigner(endpoints *resolver, c clock.Clock) *presigner {
	if c == nil {
		c = clock.System{}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true // S3 signs the path as it is
	})
	return &presigner{endpoints, signer, c}
}

// The names of S3's operations and of its service in a signature, and the digest of a body
// that is not signed (Amazon S3 API Reference, "Authenticating Requests: Using Query
// Parameters").
const (
	operationGet = "GetObject"
	operationPut = "PutObject"

	signedService   = "s3"
	unsignedPayload = "UNSIGNED-PAYLOAD"
)

// presigned describes the request that a URL permits.
type presigned struct {
	method, operation, bucket, key string
	query                          url.Values
	// header contains the headers that the request must have.
	header http.Header
	ttl    time.Duration
}

// sign returns the URL, signed with the current keys.
func (p *presigner) sign(ctx context.Context, of presigned) (string, error) {
	if of.key == "" {
		return "", errors.New("empty key")
	}
	keys, err := p.endpoints.current(ctx)
	if err != nil {
		return "", err
	}
	endpoint, err := p.endpoints.resolve(ctx, keys, s3.EndpointParameters{Bucket: &of.bucket, ForcePathStyle: aws.Bool(pathStyle)})
	if err != nil {
		return "", err
	}
	region := keys.Region
	options, _ := auth.GetAuthOptions(&endpoint.Properties)
	for _, o := range options {
		if signed, ok := smithyhttp.GetSigV4SigningRegion(&o.SignerProperties); ok {
			region = signed
		}
	}
	u := endpoint.URI
	if u.RawPath == "" {
		u.RawPath = u.Path
	}
	u.Path = smithyhttp.JoinPath(u.Path, "/"+of.key)
	u.RawPath = smithyhttp.JoinPath(u.RawPath, "/"+httpbinding.EscapePath(of.key, false))
	of.query.Set("x-id", of.operation)
	of.query.Set("X-Amz-Expires", strconv.FormatInt(int64(of.ttl/time.Second), 10))
	u.RawQuery = of.query.Encode()
	request := &http.Request{Method: of.method, URL: &u, Host: u.Host, Header: of.header}
	credentials := aws.Credentials{AccessKeyID: keys.AccessKeyID, SecretAccessKey: keys.SecretAccessKey}
	signed, _, err := p.signer.PresignHTTP(ctx, credentials, request, unsignedPayload, signedService, region, p.clock.Now())
	return signed, err
}

// PresignGet implements port.Outputs.
func (o *Outputs) PresignGet(ctx context.Context, key, disposition, contentType string, ttl time.Duration) (string, error) {
	if err := checkTTL(ttl); err != nil {
		return "", err
	}
	signed, err := o.presign.sign(ctx, presigned{
		method: http.MethodGet, operation: operationGet, bucket: o.accepted, key: key, ttl: ttl, header: http.Header{},
		query: url.Values{"response-content-disposition": {disposition}, "response-content-type": {contentType}},
	})
	return signed, named(err, "sign a download")
}

// PresignPut implements port.Outputs. The URL requires the given Content-Type.
func (o *Outputs) PresignPut(ctx context.Context, key, contentType string, ttl time.Duration) (string, error) {
	if err := checkTTL(ttl); err != nil {
		return "", err
	}
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	signed, err := o.presign.sign(ctx, presigned{
		method: http.MethodPut, operation: operationPut, bucket: o.uploads, key: key, ttl: ttl, header: header, query: url.Values{},
	})
	return signed, named(err, "sign an upload")
}

// checkTTL returns a fault for a ttl beyond the limits of signatures of version 4.
func checkTTL(ttl time.Duration) error {
	if ttl < time.Second || ttl > 7*24*time.Hour {
		return fault.Invalid("ttl", "a presigned URL lives from 1 second to 7 days")
	}
	return nil
}
