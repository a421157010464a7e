package awsfake

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Guard returns an HTTP client that sends a call to next if the identity of the call may make
// it.
func (i *IAM) Guard(next aws.HTTPClient) aws.HTTPClient { return guard{i, next} }

type guard struct {
	iam  *IAM
	next aws.HTTPClient
}

// Do implements aws.HTTPClient.
func (g guard) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("cannot read the request: %w", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if denied := g.iam.Authorize(r, body); denied != nil {
		return denied, nil
	}
	return g.next.Do(r)
}
