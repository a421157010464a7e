// Package tenantaws lists buckets with the API of Amazon S3, and reads queues with that of Amazon
// SQS, for the sensors of jobs.
//
// Addresses and credentials are those of a tenant. A call uses no other credentials, connects only
// to addresses that the policy of the operator permits, follows no redirect, and reads at most
// maxBody bytes of an answer. Errors contain no credentials, and of an address only its host.
package tenantaws

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

const (
	// maxBody is more than a page of objects with the longest keys, or ten messages of 1 MiB.
	maxBody = 16 << 20
	// callLimit limits one request.
	callLimit = 15 * time.Second
	// tries is how often a request is sent.
	tries = 2
	// maxCode is the longest code of an error that is shown.
	maxCode = 64
)

// Client makes the calls. It is safe for concurrent use.
type Client struct {
	policy guard.Policy
	roots  *x509.CertPool
}

// New returns a client with the policy of the operator. roots replaces those of the host in tests.
func New(policy guard.Policy, roots *x509.CertPool) *Client { return &Client{policy, roots} }

// endpoint returns the scheme and the host of an address, and a client of it. done closes its
// connections.
func (c *Client) endpoint(address string) (base string, client *http.Client, done func(), err error) {
	target, err := c.policy.Target(address)
	if err != nil {
		return "", nil, nil, fault.New(fault.Unavailable, "%v", err)
	}
	dialer := &net.Dialer{Control: c.policy.Control(target), KeepAlive: -1}
	transport := &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots},
	}
	client = &http.Client{
		Transport: bounded{transport}, Timeout: callLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return target.URL.Scheme + "://" + target.URL.Host, client, transport.CloseIdleConnections, nil
}

// bounded cuts the answers at maxBody.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxBody), response.Body}
	}
	return response, err //nolint:wrapcheck // the caller names the host
}

func credentials(c sensor.Credentials) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}, nil
	})
}

// failed returns the fault of a call. It contains no text of the answer but the code of its error.
func failed(ctx context.Context, err error, address, doing string) error {
	host := address
	if _, rest, ok := strings.Cut(address, "://"); ok {
		host, _, _ = strings.Cut(rest, "/")
	}
	why := "no answer from " + host
	answer, answered := errors.AsType[*awshttp.ResponseError](err)
	var coded smithy.APIError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("cannot %s: %w", doing, ctx.Err())
	case errors.Is(err, guard.ErrNotPermitted):
		why = fmt.Sprintf("host %s has an address that is not public and that the operator does not permit", host)
	case errors.As(err, &coded) && coded.ErrorCode() != "" && limit.Printable(coded.ErrorCode()):
		why = fmt.Sprintf("%s answered %s", host, limit.Cut(coded.ErrorCode(), maxCode))
	case answered && answer.HTTPStatusCode() > 0:
		why = fmt.Sprintf("%s answered with the status %d", host, answer.HTTPStatusCode())
	}
	return fault.Wrap(err, fault.Unavailable, "cannot %s: %s", doing, why)
}
