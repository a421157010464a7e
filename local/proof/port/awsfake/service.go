package awsfake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
)

// service answers the HTTP requests of one API of AWS JSON.
type service struct {
	// namespace is the prefix of error types in responses.
	namespace string
	plan      Plan
	// handle returns the call of a request and the function that makes it. It returns a refusal
	// for an unknown operation.
	handle func(operation string, body []byte) (Call, answer, error)

	counting sync.Mutex
	counts   map[[2]string]int
}

// answer makes a call. It handles all fates except Lost. For an Unsure call it returns the
// answer, which the service then drops.
type answer func(ctx context.Context, c Call, fate Fate) (any, error)

// request is a decoded request.
type request[T any] interface {
	*T
	// call returns the subject of the request, and whether it is a write.
	call() (subject string, write bool)
}

// bind decodes a request and returns its call and the function that makes it.
func bind[T any, R request[T]](
	operation string, body []byte, do func(ctx context.Context, c Call, r R, fate Fate) (any, error),
) (Call, answer, error) {
	r, err := decode[T](body)
	if err != nil {
		return Call{}, nil, err
	}
	return callOf(operation, R(r)), func(ctx context.Context, c Call, fate Fate) (any, error) { return do(ctx, c, r, fate) }, nil
}

// callOf returns the call of a request.
func callOf[T any, R request[T]](operation string, r R) Call {
	c := Call{Operation: operation}
	c.Subject, c.Write = r.call()
	return c
}

// configuration returns the SDK configuration for a fake.
func configuration(endpoint string, client aws.HTTPClient) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: client,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
		APIOptions: []func(*middleware.Stack) error{lean(endpoint)},
	}
}

// Do implements aws.HTTPClient.
func (s *service) Do(request *http.Request) (*http.Response, error) {
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot read the request: %w", err)
	}
	_, operation, _ := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
	var output any
	call, do, err := s.handle(operation, body)
	if err == nil {
		output, err = s.answer(request.Context(), call, do)
	}
	return s.respond(request, output, err)
}

// respond returns the response for the output or error of a call.
func (s *service) respond(request *http.Request, output any, err error) (*http.Response, error) {
	if _, broken := errors.AsType[net.Error](err); broken {
		return nil, err
	}
	status := http.StatusOK
	text, failed := json.Marshal(output)
	if r, ok := errors.AsType[*refusal](err); ok {
		status = r.httpStatus()
		text, failed = r.body(s.namespace)
	} else if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("cannot encode the response: %w", failed)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, ContentLength: int64(len(text)),
		Body: io.NopCloser(bytes.NewReader(text)), Request: request,
	}, nil
}

// answer makes a call with the fate that the plan decides.
func (s *service) answer(ctx context.Context, call Call, do answer) (any, error) {
	call.Number = s.count(call.Operation, call.Subject)
	fate := Applied
	if s.plan != nil && call.Subject != "" {
		fate = s.plan(call)
	}
	if fate == Lost {
		return nil, broken(call)
	}
	output, err := do(ctx, call, fate)
	if fate == Unsure {
		return nil, broken(call)
	}
	return output, err
}

func (s *service) count(operation, subject string) int {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.counts[[2]string{operation, subject}]++
	return s.counts[[2]string{operation, subject}]
}

// broken returns an error that does not show whether the call was applied.
func broken(c Call) error {
	if c.Number%2 == 0 {
		return &refusal{code: "InternalServerError", message: "the fake fails by plan", status: http.StatusInternalServerError}
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// decode decodes a request. It rejects fields that the fake does not support.
func decode[T any](body []byte) (*T, error) {
	request := new(T)
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.DisallowUnknownFields()
	if err := reader.Decode(request); err != nil {
		return nil, invalid("the fake cannot read the request: %v", err)
	}
	return request, nil
}
