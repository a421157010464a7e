package deployed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bootstrap is what one function reads, and which SDKs it links.
type bootstrap struct {
	reads []string
	links []string
}

// What several functions read and link.
var (
	table     = []string{"SORTIE_TABLE"}
	machine   = []string{"SORTIE_STATE_MACHINE"}
	fly       = []string{"SORTIE_SECRET_FLY", "SORTIE_FLY_APPS", "SORTIE_FLY_URL"}
	clients   = []string{"SORTIE_SECRET_CLIENTS"}
	outputs   = []string{"SORTIE_SECRET_OUTPUTS", "SORTIE_UPLOADS_BUCKET", "SORTIE_KEPT_BUCKET", "SORTIE_OUTPUTS_ENDPOINT"}
	keys      = []string{"SORTIE_KEYS"}
	settings  = []string{"SORTIE_PUBLIC_URL", "SOURCE_API_URL", "SORTIE_REDIRECT_OVER"}
	dynamodb  = "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	sfn       = "github.com/aws/aws-sdk-go-v2/service/sfn"
	kms       = "github.com/aws/aws-sdk-go-v2/service/kms"
	s3        = "github.com/aws/aws-sdk-go-v2/service/s3"
	secret    = "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	bus       = "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	machines  = "github.com/superfly/fly-go"
	heavy     = []string{dynamodb, sfn, kms, s3, secret, bus, machines}
	untouched = []string{"modernc.org/sqlite", "github.com/aws/aws-sdk-go-v2/config", "net/rpc", "github.com/sortie-dev/sortie/local"}
)

var bootstraps = map[string]bootstrap{
	"admit":     {slices.Concat(table, machine, settings), []string{dynamodb, sfn}},
	"constrain": {slices.Concat(table, machine, settings), []string{dynamodb, sfn}},
	"act":       {slices.Concat(table, machine, settings), []string{dynamodb, sfn}},
	"launch":    {slices.Concat(table, machine, settings, fly, outputs, keys), []string{dynamodb, sfn, kms, s3, secret, machines}},
	"supervise": {slices.Concat(table, machine, settings, fly), []string{dynamodb, sfn, secret, machines}},
	"terminate": {slices.Concat(table, machine, settings, fly, outputs), []string{dynamodb, sfn, s3, secret, machines}},
	"sweep":     {slices.Concat(table, machine, settings, fly, outputs), []string{dynamodb, sfn, s3, secret, machines}},
	"export":    {slices.Concat(table, machine, settings, clients), []string{dynamodb, sfn, secret}},
	"callback":  {slices.Concat(table, machine, settings, keys, outputs), []string{dynamodb, sfn, kms, s3, secret}},
	"status":    {slices.Concat(table, settings, clients), []string{dynamodb, secret}},
	"download":  {slices.Concat(table, settings, clients, outputs, []string{"SORTIE_STREAMING"}), []string{dynamodb, s3, secret}},
	"tasks":     {slices.Concat(table, machine, settings, clients, fly, outputs, keys, []string{"SORTIE_VERSION"}), []string{dynamodb, sfn, kms, s3, secret, machines}},
	"relay":     {[]string{"SORTIE_BUS"}, []string{dynamodb, bus}},
}

// optional are variables that may be left out.
var optional = []string{"SORTIE_FLY_APPS", "SORTIE_FLY_URL", "SORTIE_OUTPUTS_ENDPOINT", "SORTIE_STREAMING", "SORTIE_VERSION", "SORTIE_REDIRECT_OVER", "SORTIE_PUBLIC_URL", "SOURCE_API_URL"}

// values are good ones for all variables.
var values = map[string]string{
	"SORTIE_STAGE": "dev", "SORTIE_TABLE": "sortie-dev", "SORTIE_BUS": "sortie-dev-events",
	"SORTIE_STATE_MACHINE":  "arn:aws:states:eu-central-1:210987654321:stateMachine:sortie-dev-run",
	"SORTIE_KEYS":           "11111111-2222-4333-8444-555555555555,66666666-7777-4888-9999-000000000000",
	"SORTIE_SECRET_CLIENTS": "sortie/dev/clients", "SORTIE_SECRET_FLY": "sortie/dev/fly", "SORTIE_SECRET_OUTPUTS": "sortie/dev/outputs",
	"SORTIE_UPLOADS_BUCKET": "uploads", "SORTIE_KEPT_BUCKET": "kept", "SORTIE_OUTPUTS_ENDPOINT": "https://s3.example",
	"SORTIE_FLY_APPS": "app-a,app-b", "SORTIE_FLY_URL": "https://machines.example",
	"SORTIE_PUBLIC_URL": "https://api.example/dev", "SOURCE_API_URL": "https://source.example", "SORTIE_REDIRECT_OVER": "8388608",
	"SORTIE_STREAMING": "buffered", "SORTIE_VERSION": "v1",
}

// built is the folder of the built bootstraps: built/NAME/bootstrap.
var built struct {
	sync.Once
	dir string
	err error
}

func build(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "bootstraps"); built.err != nil { //nolint:usetesting // it outlives the test that comes first
			return
		}
		for name := range bootstraps {
			cmd := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-buildvcs=false", "-ldflags", "-s -w -buildid=",
				"-o", filepath.Join(built.dir, name, "bootstrap"), "github.com/sortie-dev/sortie/functions/"+name+"/bootstrap")
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if text, err := cmd.CombinedOutput(); err != nil {
				built.err = fmt.Errorf("%s: %w: %s", name, err, text)
				return
			}
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(built.dir); err != nil {
		code = 1
	}
	os.Exit(code)
}

// check runs a bootstrap with -check in an environment of its own.
func check(t *testing.T, name string, env []string) (out, problems []string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(build(t), name, "bootstrap"), "-check")
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if _, ok := errors.AsType[*exec.ExitError](cmd.Run()); !ok && cmd.ProcessState == nil {
		t.Fatal("it does not run")
	}
	return strings.Fields(stdout.String()), strings.Split(strings.TrimSpace(stderr.String()), "\n"), cmd.ProcessState.ExitCode()
}

func environment(reads []string) []string {
	var env []string
	for _, name := range append(reads, "SORTIE_STAGE") {
		env = append(env, name+"="+values[name])
	}
	return env
}

func TestEveryFunctionHasABootstrap(t *testing.T) {
	t.Parallel()
	mains, err := filepath.Glob("../../../functions/*/bootstrap/main.go")
	if err != nil || len(mains) != len(bootstraps)+1 { // the worker's is a container's
		t.Errorf("there are %d bootstraps (%v), and %d are known here", len(mains)-1, err, len(bootstraps))
	}
}

func TestBootstrapsReadTheirVariables(t *testing.T) {
	t.Parallel()
	for name, b := range bootstraps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := append(slices.Clone(b.reads), "SORTIE_STAGE")
			slices.Sort(want)
			read, _, code := check(t, name, environment(b.reads))
			if code != 0 || !slices.Equal(read, want) {
				t.Errorf("it exits with %d and reads %v, want %v", code, read, want)
			}
			_, problems, code := check(t, name, nil)
			needed := slices.DeleteFunc(want, func(v string) bool {
				return slices.Contains(optional, v) && (name != "launch" || !strings.HasSuffix(v, "_URL") || v == "SORTIE_FLY_URL")
			})
			var named []string
			for _, p := range problems {
				named = append(named, strings.TrimSuffix(p, " is not set"))
			}
			slices.Sort(named)
			if code != 2 || !slices.Equal(named, needed) {
				t.Errorf("with nothing it exits with %d and names %q, want %q", code, named, needed)
			}
		})
	}
}

func TestBootstrapsLinkWhatTheyUse(t *testing.T) {
	t.Parallel()
	for name, b := range bootstraps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := exec.CommandContext(t.Context(), "go", "list", "-tags", "lambda.norpc", "-deps", "github.com/sortie-dev/sortie/functions/"+name+"/bootstrap").Output()
			if err != nil {
				t.Fatal(err)
			}
			deps := strings.Fields(string(text))
			for _, sdk := range heavy {
				if links := slices.Contains(deps, sdk); links != slices.Contains(b.links, sdk) {
					t.Errorf("it links %s: %v", sdk, links)
				}
			}
			for _, dep := range deps {
				if slices.ContainsFunc(untouched, func(no string) bool { return dep == no || strings.HasPrefix(dep, no+"/") }) {
					t.Errorf("it links %s", dep)
				}
			}
		})
	}
}

// TestBootstrapsServe plays Lambda's Runtime API: each starts without a call to
// anybody, and answers an event that is none of its own with an error by name.
func TestBootstrapsServe(t *testing.T) {
	t.Parallel()
	for name, b := range bootstraps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(build(t), name, "bootstrap")
			aws := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("it calls %s %s", r.Method, r.URL)
			}))
			t.Cleanup(aws.Close)
			l := &lambda{began: time.Now(), asked: make(chan time.Time, 1), told: make(chan string, 1), stop: make(chan struct{})}
			api := httptest.NewServer(l)
			t.Cleanup(api.Close)
			cmd := exec.CommandContext(t.Context(), binary)
			var logs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &logs, &logs
			cmd.Env = append(environment(b.reads), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "AWS_REGION=eu-central-1",
				"AWS_LAMBDA_FUNCTION_VERSION=3", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL="+aws.URL)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var init time.Duration
			var answer string
			limit, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for answer == "" && limit.Err() == nil {
				select {
				case at := <-l.asked:
					init = at.Sub(l.began)
				case answer = <-l.told:
				case <-limit.Done():
				}
			}
			close(l.stop)
			_ = cmd.Process.Kill() // it serves until then
			_ = cmd.Wait()
			if !strings.Contains(answer, `"errorType":"InvalidInput"`) {
				t.Errorf("it answers %q; its log: %s", answer, &logs)
			}
			for _, says := range []string{`"function":"` + name + `"`, `"request_id":"request-1"`, `"cold_start":true`, `"version":"3"`, `"ColdStarts":1`} {
				if !strings.Contains(logs.String(), says) {
					t.Errorf("the log does not say %s: %s", says, &logs)
				}
			}
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" {
				t.Logf("first event asked for after %d ms, at most %d MB resident", init.Milliseconds(), usage.Maxrss>>10)
			}
		})
	}
}

// lambda is the Runtime API for one event.
type lambda struct {
	began time.Time
	asked chan time.Time
	told  chan string
	stop  chan struct{}
	once  sync.Once
}

// ServeHTTP gives the event once, and takes the answer.
func (l *lambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/invocation/next") {
		text, _ := io.ReadAll(r.Body)
		l.told <- string(text)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	first := false
	l.once.Do(func() { first = true })
	if !first {
		<-l.stop
		return
	}
	l.asked <- time.Now()
	w.Header().Set("Lambda-Runtime-Aws-Request-Id", "request-1")
	w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(10*time.Second).UnixMilli()))
	_, _ = io.WriteString(w, "[]")
}
