package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// bench runs a process without Lambda.
type bench struct {
	*Process
	out, err bytes.Buffer
	code     int // exit code, or -1
	handler  any // the handler passed to Lambda's loop
}

func setup(t *testing.T, env map[string]string, args ...string) *bench {
	t.Helper()
	b := &bench{code: -1}
	b.Process = New("status", Host{
		Args: args, Environ: slices.Sorted(maps.Keys(env)), Out: &b.out, Err: &b.err, Clock: clock.NewVirtual(time.UnixMilli(1_795_262_400_000)),
		Env:  func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Exit: func(code int) { b.code = code },
	})
	b.serve = func(handler any) { b.handler = handler }
	return b
}

func (b *bench) call(t *testing.T, event string) (string, error) {
	t.Helper()
	if b.handler == nil {
		t.Fatalf("got no handler: %s%s", &b.err, &b.out)
	}
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "request-7"})
	answer, err := lambda.NewHandler(b.handler).Invoke(ctx, []byte(event))
	return string(answer), err
}

// lines returns the log lines and the metric lines.
func (b *bench) lines(t *testing.T) (logs, metrics []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("not JSON: %s", line)
		}
		if m["_aws"] != nil {
			metrics = append(metrics, m)
		} else {
			logs = append(logs, m)
		}
	}
	return logs, metrics
}

var deployed = map[string]string{"SORTIE_STAGE": "dev", "AWS_LAMBDA_FUNCTION_VERSION": "12", "AWS_REGION": "eu-central-1"}

func ok(w http.ResponseWriter, r *http.Request) error {
	return httpkit.WriteJSON(w, http.StatusOK, httpkit.CallerOf(r.Context()))
}

func routes(credential httpkit.Access, handle httpkit.Handler) []httpkit.Route {
	route := httpkit.Route{Method: http.MethodGet, Pattern: "/x", Access: credential, Query: []string{"q"}, Handle: handle}
	if credential == httpkit.ForClients {
		route.Scope = access.RunsRead
	}
	return []httpkit.Route{route}
}

// tokens is a TokenSource. If it is nil, reading the secret fails.
type tokens []string

func (s *tokens) Refused() {}

func (s *tokens) Current(context.Context) (records []access.Token, required bool, err error) {
	if *s == nil {
		return nil, true, fault.New(fault.Unavailable, "no secret")
	}
	return access.OfTexts(*s, access.Default, access.Default), true, nil
}

func TestClientTokensMayChange(t *testing.T) {
	t.Parallel()
	good := tokens{"one"}
	b := setup(t, deployed)
	b.ServeHTTP(routes(httpkit.ForClients, ok), &good)
	call := func(token string) string {
		answer, err := b.call(t, `{"httpMethod":"GET","path":"/x","headers":{"Authorization":"Bearer `+token+`","X-Forwarded-For":"203.0.113.7"}}`)
		if err != nil {
			t.Fatal(err)
		}
		return answer[:len(`{"statusCode":200`)]
	}
	first, other := call("one"), call("two")
	good = tokens{"two"}
	second, old := call("two"), call("one")
	good = nil
	if got := []string{first, other, second, old, call("two")}; fmt.Sprint(got) !=
		fmt.Sprint([]string{`{"statusCode":200`, `{"statusCode":401`, `{"statusCode":200`, `{"statusCode":401`, `{"statusCode":503`}) {
		t.Errorf("got answers %v", got)
	}
	answer, err := b.call(t, `{"httpMethod":"GET","path":"/x","headers":{"Host":"localhost"},"requestContext":{"identity":{"sourceIp":"127.0.0.1"}}}`)
	if err != nil || !strings.HasPrefix(answer, `{"statusCode":401`) {
		t.Errorf("without a token: got %s (%v), want 401", answer, err)
	}
	if _, err := b.call(t, `{"source":"aws.events"}`); err == nil || !strings.Contains(err.Error(), "InvalidInput") && typeOf(err) != "InvalidInput" {
		t.Errorf("other event: got %v, want InvalidInput", err)
	}
}

func typeOf(err error) string {
	if response, ok := err.(messages.InvokeResponse_Error); ok { //nolint:errorlint // the type that the runtime sees
		return response.Type
	}
	return ""
}

func TestErrorsHaveNamesForTheStateMachine(t *testing.T) {
	t.Parallel()
	again := runs.TryAgain{Cause: errors.New("busy")}
	for _, row := range []struct {
		fail error
		want string
	}{
		{again, "TryAgain"},
		{&again, "TryAgain"},
		{fmt.Errorf("x: %w", again), "TryAgain"},
		{fault.New(fault.Internal, "x"), "Fault"},
		{errors.New("Get \"https://h/x?token=abc\": refused"), "errorString"},
	} {
		b := setup(t, deployed)
		b.ServeTask(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, row.fail })
		_, err := b.call(t, `{}`)
		if typeOf(err) != row.want || strings.Contains(err.Error(), "abc") {
			t.Errorf("%v: got %v (%s), want %s", row.fail, err, typeOf(err), row.want)
		}
		_, metrics := b.lines(t)
		if len(metrics) != 1 || metrics[0]["TasksFailed"] != 1.0 || metrics[0]["function"] != "status" || metrics[0]["stage"] != "dev" {
			t.Errorf("got metrics %v", metrics)
		}
	}
}

func TestPanicIsAnErrorAndLogged(t *testing.T) {
	t.Parallel()
	b := setup(t, deployed)
	b.ServeTask(lambdakit.Task(func(context.Context, struct{}) (struct{}, error) { panic("out of ideas") }))
	_, err := b.call(t, `{}`)
	response, _ := err.(messages.InvokeResponse_Error) //nolint:errorlint // the type that the runtime sees
	if response.Type != "Panicked" || response.ShouldExit {
		t.Errorf("got %+v, want Panicked", err)
	}
	logs, _ := b.lines(t)
	if last := logs[len(logs)-1]; !strings.Contains(fmt.Sprint(last["stack"]), "process_test.go") || last["name"] != "Panicked" {
		t.Errorf("got log %v", logs)
	}
}

func TestLinesHaveTheCallsAttributes(t *testing.T) {
	t.Parallel()
	b := setup(t, deployed)
	b.ServeEvent(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		lambdakit.Count(ctx, "RelayFailures", 2)
		b.Log.WarnContext(ctx, "job.failed", "fault", string(fault.WorkerLost))
		return json.RawMessage(`{"a":"<"}`), nil
	})
	for range 2 {
		if answer, err := b.call(t, `{}`); err != nil || answer != `{"a":"<"}` {
			t.Errorf("got answer %s (%v)", answer, err)
		}
	}
	logs, metrics := b.lines(t)
	if len(logs) != 3 || len(metrics) != 4 {
		t.Fatalf("got lines %s", &b.out)
	}
	for i, cold := range []any{true, true, nil} {
		if l := logs[i]; l["request_id"] != "request-7" || l["function"] != "status" || l["version"] != "12" || l["cold_start"] != cold {
			t.Errorf("line %d: got %v", i, l)
		}
	}
	if m := metrics[0]; m["RelayFailures"] != 2.0 {
		t.Errorf("first call: got metrics %v", m)
	}
	if m := metrics[1]; m["code"] != "WORKER_LOST" || m["Faults"] != 1.0 {
		t.Errorf("first call: got fault metrics %v", m)
	}
	if m := metrics[2]; m["RelayFailures"] != 2.0 {
		t.Errorf("second call: got metrics %v", m)
	}
}

// TestSuccessHasNoMetric checks that a successful call writes no custom metric, which would
// cost money for each function. The log has the cold start.
func TestSuccessHasNoMetric(t *testing.T) {
	t.Parallel()
	b := setup(t, deployed)
	b.ServeEvent(nothing)
	for range 2 {
		if _, err := b.call(t, `{}`); err != nil {
			t.Error(err)
		}
	}
	logs, metrics := b.lines(t)
	if len(metrics) != 0 || len(logs) != 1 || logs[0]["msg"] != "cold start" || logs[0]["init_ms"] == nil {
		t.Errorf("got metrics %v and log %v, want one cold start in the log", metrics, logs)
	}
}

func TestStreamsAreCountedAtTheirEnd(t *testing.T) {
	t.Parallel()
	write := func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte("part"))
		panic(http.ErrAbortHandler)
	}
	b := setup(t, deployed)
	b.ServeStream(routes(httpkit.ForAll, write), nil)
	answer, err := b.call(t, `{"httpMethod":"GET","path":"/x"}`)
	if err == nil || !strings.HasPrefix(answer, `{"statusCode":206`) && answer != "" {
		t.Errorf("got stream %q (%v)", answer, err)
	}
	if _, metrics := b.lines(t); len(metrics) != 1 || metrics[0]["RequestsBroken"] != 1.0 {
		t.Errorf("got metrics %v", metrics)
	}
	b = setup(t, map[string]string{"SORTIE_STAGE": "dev", "SORTIE_STREAMING": "buffered"})
	b.ServeStream(routes(httpkit.ForAll, ok), nil)
	answer, err = b.call(t, `{"httpMethod":"GET","path":"/x"}`)
	if err != nil || !strings.HasPrefix(answer, `{"statusCode":200,"headers":{}`) {
		t.Errorf("buffered: got answer %s (%v)", answer, err)
	}
	if _, metrics := b.lines(t); len(metrics) != 0 {
		t.Errorf("success: got metrics %v, want none", metrics)
	}
	if _, err := b.call(t, `{"httpMethod":"GET","path":"/none"}`); err != nil {
		t.Error(err)
	}
	if _, metrics := b.lines(t); len(metrics) != 1 || metrics[0]["Requests4xx"] != 1.0 {
		t.Errorf("unknown path: got metrics %v, want one request", metrics)
	}
}

func TestLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t, deployed)
	b.Log.Info(`Post "https://x.example/callback/t?token=abc": eof`, "error", errors.New("Bearer s3cr3t is wrong"), "url", "https://b.example/k?X-Amz-Signature=f00")
	b.Log.With("token", "eyJhbGciOi.eyJzdWIi.c2ln-_").Info("?")
	for _, secret := range []string{"abc", "s3cr3t", "f00", "eyJ"} {
		if strings.Contains(b.out.String(), secret) {
			t.Errorf("got %q in the log %s", secret, &b.out)
		}
	}
	if !strings.Contains(b.out.String(), "https://x.example/callback/t[redacted]") {
		t.Errorf("got log %s", &b.out)
	}
	_, _ = runtimeLog{b.Log}.Write([]byte("2026 broken pipe\n"))
	_, _ = runtimeLog{b.Log}.Write([]byte(`{"errorMessage":"payload"}` + "\n"))
	if text := b.out.String(); !strings.Contains(text, "broken pipe") || strings.Contains(text, "payload") {
		t.Errorf("got log %s", text)
	}
}
