package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// delayOf returns how long a service needs for an operation, in its order of magnitude.
func delayOf(operation string) time.Duration {
	switch operation {
	case "GetItem", "BatchGetItem", "Query", "Scan":
		return 4 * time.Millisecond
	case "PutItem", "UpdateItem", "DeleteItem":
		return 6 * time.Millisecond
	case "TransactWriteItems":
		return 20 * time.Millisecond
	}
	return 15 * time.Millisecond // of Step Functions
}

// pause waits in the bubble.
func pause(d time.Duration) { _ = clock.Sleep(context.Background(), clock.System{}, d) }

// connection is one to the fake of a service. It delays calls, and counts those that are
// refused, each try of the SDK.
type connection struct {
	w      *world
	client aws.HTTPClient
}

// through returns the configuration with a connection that is delayed and counted.
func (w *world) through(config aws.Config) aws.Config {
	config.HTTPClient = &connection{w, config.HTTPClient}
	return config
}

// Do implements aws.HTTPClient.
func (s *connection) Do(request *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
	delay := delayOf(operation)
	pause(delay / 2)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	refusal := ""
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(text))
		refusal = refusalOf(text)
	}
	s.w.counted(func(r *Result) {
		r.Calls[operation]++
		if refusal != "" {
			r.Refusals[operation+" "+refusal]++
		}
	})
	pause(delay - delay/2)
	return response, nil
}

// refusalOf names why a service refuses a call.
func refusalOf(answer []byte) string {
	for _, name := range []string{"ProvisionedThroughputExceeded", "ThrottlingError", "ThrottlingException", "TransactionConflict", "ConditionalCheckFailed"} {
		if bytes.Contains(answer, []byte(name)) {
			return name
		}
	}
	return "other"
}

// The limits and delays of functions (AWS Lambda Developer Guide, "Lambda quotas" and
// "Understanding Lambda function scaling"). coldStart is that of an arm64 program in Go.
const (
	mostFunctions = 1000
	coldStart     = 350 * time.Millisecond
	keptWarm      = 5 * time.Minute
)

// errTooMany is the answer to a call beyond the concurrent functions of an account.
var errTooMany = errors.New("TooManyRequestsException: Rate Exceeded")

// environment is an execution environment of a function, with the memory of its process. It has
// one call at a time.
type environment struct {
	system    *app.System
	functions map[string]lambdakit.TaskFunc
	handlers  []http.Handler // by tenant
	idleSince time.Time
}

// lambdas are the execution environments of the functions.
type lambdas struct {
	w *world

	mu      sync.Mutex
	running int
	// idle has the idle environments of each function, the last used one last.
	idle map[string][]*environment
}

// run runs a call of a function in an environment.
func (l *lambdas) run(function string, do func(*environment)) error {
	e, err := l.begin(function)
	if err != nil {
		return err
	}
	do(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	e.idleSince = time.Now()
	l.idle[function] = append(l.idle[function], e)
	return nil
}

func (l *lambdas) begin(function string) (*environment, error) {
	l.mu.Lock()
	if l.running >= mostFunctions {
		l.mu.Unlock()
		l.w.counted(func(r *Result) { r.FunctionRefusals++ })
		return nil, errTooMany
	}
	l.running++
	peak := l.running
	var e *environment
	if idle := l.idle[function]; len(idle) > 0 {
		if last := idle[len(idle)-1]; time.Since(last.idleSince) < keptWarm {
			e = last
		}
		l.idle[function] = idle[:len(idle)-1]
	}
	l.mu.Unlock()
	l.w.counted(func(r *Result) {
		r.FunctionCalls++
		r.FunctionPeak = max(r.FunctionPeak, peak)
		if e == nil {
			r.ColdStarts++
		}
	})
	if e != nil {
		return e, nil
	}
	pause(coldStart)
	return l.w.newEnvironment()
}
