package deployed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

// Variables that several functions read.
var (
	step     = []string{"SORTIE_STEP"}
	table    = []string{"SORTIE_TABLE", "SORTIE_PLAIN_ITEMS"}
	machine  = []string{"SORTIE_STATE_MACHINE"}
	fly      = []string{"SORTIE_SECRET_FLY", "SORTIE_FLY_APPS", "SORTIE_FLY_URL"}
	clients  = []string{"SORTIE_SECRET_CLIENTS"}
	outputs  = []string{"SORTIE_SECRET_OUTPUTS", "SORTIE_UPLOADS_BUCKET", "SORTIE_ACCEPTED_BUCKET", "SORTIE_OUTPUTS_ENDPOINT"}
	keys     = []string{"SORTIE_KEYS"}
	settings = []string{"SORTIE_PUBLIC_URL", "SOURCE_API_URL", "SORTIE_REDIRECT_OVER"}
)

// functions are the variables that each function reads beside SORTIE_STAGE.
var functions = map[string][]string{
	"admit":     slices.Concat(step, table, machine, settings),
	"constrain": slices.Concat(step, table, machine, settings),
	"act":       slices.Concat(step, table, machine, settings),
	"launch":    slices.Concat(step, table, machine, settings, fly, outputs, keys),
	"supervise": slices.Concat(step, table, machine, settings, fly),
	"terminate": slices.Concat(step, table, machine, settings, fly, outputs),
	"sweep":     slices.Concat(table, machine, settings, fly, outputs),
	"export":    slices.Concat(table, machine, settings, clients),
	"callback":  slices.Concat(table, machine, settings, keys, outputs),
	"status":    slices.Concat(table, clients),
	"download":  slices.Concat(table, settings, clients, outputs, []string{"SORTIE_STREAMING"}),
	"tasks":     slices.Concat(table, machine, settings, clients, fly, outputs, keys, []string{"SORTIE_VERSION"}),
	"relay":     {"SORTIE_BUS"},
}

// program is the folder of a function's program.
func program(function string) string {
	if slices.Contains(functions[function], "SORTIE_STEP") {
		return "steps"
	}
	return function
}

// programs lists the programs of all functions.
func programs() []string {
	list := map[string]bool{}
	for name := range functions {
		list[program(name)] = true
	}
	return slices.Sorted(maps.Keys(list))
}

const (
	flyGo       = "github.com/superfly/fly-go"
	eventBridge = "github.com/aws/aws-sdk-go-v2/service/eventbridge"
)

// links are the programs that link an SDK which most functions do not use.
var links = map[string][]string{flyGo: {"steps", "sweep", "tasks"}, eventBridge: {"relay"}}

// unlinked are packages that no program links.
var unlinked = []string{"modernc.org/sqlite", "zombiezen.com/go/sqlite", "github.com/aws/aws-sdk-go-v2/config", "net/rpc", "github.com/sortie-dev/sortie/local"}

// optional are variables that may be absent.
var optional = []string{"SORTIE_PLAIN_ITEMS", "SORTIE_FLY_APPS", "SORTIE_FLY_URL", "SORTIE_OUTPUTS_ENDPOINT", "SORTIE_STREAMING", "SORTIE_VERSION", "SORTIE_REDIRECT_OVER", "SORTIE_PUBLIC_URL", "SOURCE_API_URL"}

// values has a valid value of each variable but SORTIE_STEP.
var values = map[string]string{
	"SORTIE_STAGE": "dev", "SORTIE_TABLE": "sortie-dev", "SORTIE_BUS": "sortie-dev-events",
	"SORTIE_STATE_MACHINE":  "arn:aws:states:eu-central-1:210987654321:stateMachine:sortie-dev-run",
	"SORTIE_KEYS":           "11111111-2222-4333-8444-555555555555,66666666-7777-4888-9999-000000000000",
	"SORTIE_SECRET_CLIENTS": "sortie/dev/clients", "SORTIE_SECRET_FLY": "sortie/dev/fly", "SORTIE_SECRET_OUTPUTS": "sortie/dev/outputs",
	"SORTIE_UPLOADS_BUCKET": "uploads", "SORTIE_ACCEPTED_BUCKET": "accepted", "SORTIE_OUTPUTS_ENDPOINT": "https://s3.example",
	"SORTIE_FLY_APPS": "app-a,app-b", "SORTIE_FLY_URL": "https://machines.example",
	"SORTIE_PUBLIC_URL": "https://api.example/dev", "SOURCE_API_URL": "https://source.example", "SORTIE_REDIRECT_OVER": "8388608",
	"SORTIE_STREAMING": "buffered", "SORTIE_PLAIN_ITEMS": "true", "SORTIE_VERSION": "v1",
}

// built is the folder of the built programs: NAME/bootstrap.
var built struct {
	sync.Once
	dir string
	err error
}

func build(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "bootstraps"); built.err != nil { //nolint:usetesting // later tests use it too
			return
		}
		for _, name := range programs() {
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

// check runs the function's program with -check and only the variables of env.
func check(t *testing.T, name string, env []string) (out, problems []string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(build(t), program(name), "bootstrap"), "-check")
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return strings.Fields(stdout.String()), strings.Split(strings.TrimSpace(stderr.String()), "\n"), cmd.ProcessState.ExitCode()
}

// environment has a valid value for everything that the function reads.
func environment(function string) []string {
	env := []string{"SORTIE_STAGE=" + values["SORTIE_STAGE"]}
	for _, name := range functions[function] {
		if name == "SORTIE_STEP" {
			env = append(env, name+"="+function)
		} else {
			env = append(env, name+"="+values[name])
		}
	}
	return env
}

func TestEveryFunctionHasAProgram(t *testing.T) {
	t.Parallel()
	mains, err := filepath.Glob("../../../functions/*/bootstrap/main.go")
	if want := len(programs()) + 1; err != nil || len(mains) != want { // the worker is a container image
		t.Errorf("got %d bootstraps (%v), want %d", len(mains), err, want)
	}
}

func TestFunctionsReadTheirVariables(t *testing.T) {
	t.Parallel()
	for name, reads := range functions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := append(slices.Clone(reads), "SORTIE_STAGE")
			slices.Sort(want)
			read, problems, code := check(t, name, environment(name))
			if code != 0 || !slices.Equal(read, want) {
				t.Errorf("got exit code %d, variables %v, problems %q; want 0, %v", code, read, problems, want)
			}
			var step []string
			if program(name) == "steps" {
				step = []string{"SORTIE_STEP=" + name}
			}
			_, problems, code = check(t, name, step)
			needed := slices.DeleteFunc(want, func(v string) bool {
				if v == "SORTIE_PUBLIC_URL" || v == "SOURCE_API_URL" {
					return name != "launch"
				}
				return v == "SORTIE_STEP" || slices.Contains(optional, v)
			})
			var named []string
			for _, p := range problems {
				named = append(named, strings.TrimSuffix(p, " is not set"))
			}
			slices.Sort(named)
			if code != 2 || !slices.Equal(named, needed) {
				t.Errorf("without variables: got exit code %d and problems %q, want 2 and %q", code, named, needed)
			}
		})
	}
}

func TestUnknownStepIsAProblem(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{
		"":       "SORTIE_STEP is not set",
		"launhc": `SORTIE_STEP: "launhc" is not a step function, want one of act, admit, constrain, launch, supervise, terminate`,
	} {
		env := slices.DeleteFunc(environment("admit"), func(v string) bool { return strings.HasPrefix(v, "SORTIE_STEP=") })
		if _, problems, code := check(t, "admit", append(env, "SORTIE_STEP="+step)); code != 2 || !slices.Equal(problems, []string{want}) {
			t.Errorf("got exit code %d and problems %q, want 2 and %q", code, problems, want)
		}
	}
}

func TestProgramsLinkWhatTheyUse(t *testing.T) {
	t.Parallel()
	for _, name := range programs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := exec.CommandContext(t.Context(), "go", "list", "-tags", "lambda.norpc", "-deps", "github.com/sortie-dev/sortie/functions/"+name+"/bootstrap").Output()
			if err != nil {
				t.Fatal(err)
			}
			deps := strings.Fields(string(text))
			for sdk, users := range links {
				if got, want := slices.Contains(deps, sdk), slices.Contains(users, name); got != want {
					t.Errorf("links %s: got %v, want %v", sdk, got, want)
				}
			}
			for _, dep := range deps {
				if slices.ContainsFunc(unlinked, func(no string) bool { return dep == no || strings.HasPrefix(dep, no+"/") }) {
					t.Errorf("got the dependency %s, want none", dep)
				}
			}
		})
	}
}

// TestFunctionsServe runs each function against a fake of Lambda's Runtime API: it
// starts without a call to AWS and answers a wrong event with InvalidInput.
func TestFunctionsServe(t *testing.T) {
	t.Parallel()
	for name := range functions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(build(t), program(name), "bootstrap")
			aws := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("got a call of AWS: %s %s, want none", r.Method, r.URL)
			}))
			t.Cleanup(aws.Close)
			l := &lambda{started: time.Now(), next: make(chan time.Time, 1), answer: make(chan string, 1), stop: make(chan struct{})}
			api := httptest.NewServer(l)
			t.Cleanup(api.Close)
			cmd := exec.CommandContext(t.Context(), binary)
			var logs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &logs, &logs
			cmd.Env = append(environment(name), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "AWS_REGION=eu-central-1",
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
				case at := <-l.next:
					init = at.Sub(l.started)
				case answer = <-l.answer:
				case <-limit.Done():
				}
			}
			close(l.stop)
			_ = cmd.Process.Kill() // it serves until then
			if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
				t.Fatal(errors.Join(errors.New("cannot wait for the process"), err))
			}
			if !strings.Contains(answer, `"errorType":"InvalidInput"`) {
				t.Errorf("got answer %q, want InvalidInput; log: %s", answer, &logs)
			}
			for _, want := range []string{`"function":"` + name + `"`, `"request_id":"request-1"`, `"cold_start":true`, `"version":"3"`, `"ColdStarts":1`} {
				if !strings.Contains(logs.String(), want) {
					t.Errorf("got log %s, want %s in it", &logs, want)
				}
			}
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" {
				t.Logf("first event requested after %d ms, at most %d MB resident", init.Milliseconds(), usage.Maxrss>>10)
			}
		})
	}
}

// lambda is the Runtime API with a single event.
type lambda struct {
	started time.Time
	next    chan time.Time
	answer  chan string
	stop    chan struct{}
	once    sync.Once
}

// ServeHTTP returns the event to the first request for one, and takes the answer.
func (l *lambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/invocation/next") {
		text, _ := io.ReadAll(r.Body)
		l.answer <- string(text)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	first := false
	l.once.Do(func() { first = true })
	if !first {
		<-l.stop
		return
	}
	l.next <- time.Now()
	w.Header().Set("Lambda-Runtime-Aws-Request-Id", "request-1")
	w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(10*time.Second).UnixMilli()))
	_, _ = io.WriteString(w, "[]")
}
