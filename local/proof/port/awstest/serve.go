package awstest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// Refusal is an error response of AWS.
type Refusal struct {
	// Code is the name of the error in the API, Message its text.
	Code, Message string
	// Status is the HTTP status; 0 means 400.
	Status int
}

func (r Refusal) Error() string { return r.Code + ": " + r.Message }

// Call answers one call. An error that is not a Refusal fails the test.
type Call func(input json.RawMessage) (output any, err error)

// Serve starts a server that answers the calls of APIs with AWS JSON until the test ends, and
// returns the configuration for clients. The keys of calls are operations, such as
// "StartExecution". Any other operation fails the test. Clients retry without a delay.
func Serve(t *testing.T, calls map[string]Call) aws.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		call, known := calls[operation]
		input, err := io.ReadAll(r.Body)
		if !known || err != nil {
			t.Errorf("got operation %q (%v), want one of the test's", operation, err)
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		output, err := call(input)
		status := http.StatusOK
		if refusal, refused := errors.AsType[Refusal](err); refused {
			output = map[string]string{"__type": refusal.Code, "message": refusal.Message}
			if status = refusal.Status; status == 0 {
				status = http.StatusBadRequest
			}
		} else if err != nil {
			t.Errorf("%s: %v", operation, err)
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(output); err != nil {
			t.Errorf("cannot encode the response to %s: %v", operation, err)
		}
	}))
	t.Cleanup(server.Close)
	cfg := config(server.URL)
	cfg.HTTPClient = server.Client()
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}
	return cfg
}

func config(endpoint string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}
