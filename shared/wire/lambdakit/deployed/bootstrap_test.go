package deployed_test

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/local/proof/bootstraps"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// programs returns the names of all functions' programs. The worker and the agent are container
// images.
func programs() ([]string, error) {
	mains, err := filepath.Glob("../../../../functions/*/bootstrap/main.go")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, main := range mains {
		if name := filepath.Base(filepath.Dir(filepath.Dir(main))); name != "worker" && name != "watch" {
			names = append(names, name)
		}
	}
	return names, nil
}

// functions maps each function to its program.
func functions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		all[name] = name
	}
	delete(all, "steps")
	for _, name := range steps.Functions() {
		all[name] = "steps"
	}
	return all
}

const (
	machines      = "github.com/sortie-dev/sortie/shared/adapter/fly"
	eventBridge   = "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	managementAPI = "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	clientGo      = "k8s.io/client-go/rest"
	lambdaAPI     = "github.com/aws/aws-sdk-go-v2/service/lambda"
	engines       = "github.com/sortie-dev/sortie/shared/adapter/engine"
	exporter      = "github.com/sortie-dev/sortie/shared/adapter/otlp"
)

// links maps SDKs that most functions do not use to the programs that link them.
var links = map[string][]string{
	machines: {"steps", "sweep", "tasks"}, clientGo: {"steps", "sweep", "tasks"}, eventBridge: {"relay"}, exporter: {"relay"}, managementAPI: {"push", "socket"},
	lambdaAPI: {"control", "dispatch", "inference", "sweep", "tasks"}, engines: {"control", "dispatch"},
}

// unlinked lists packages that no program links. The clientset of client-go contains the types
// of every API group.
var unlinked = []string{"k8s.io/client-go/kubernetes", "modernc.org/sqlite", "zombiezen.com/go/sqlite", "github.com/aws/aws-sdk-go-v2/config", "net/rpc", "google.golang.org/grpc", "github.com/sortie-dev/sortie/local"}

// values contains a valid value of each variable but SORTIE_STEP and those of secrets. The
// tests of infra compare the variables that each function reads with those that the stack sets.
var values = map[string]string{
	"SORTIE_STAGE": "dev", "SORTIE_TABLE": "sortie-dev", "SORTIE_BUS": "sortie-dev-events",
	"SORTIE_SCHEDULE_GROUP": "sortie-dev-jobs", "SORTIE_FIRE": "arn:aws:lambda:eu-central-1:210987654321:function:sortie-dev-fire",
	"SORTIE_WAKE_ROLE": "arn:aws:iam::210987654321:role/wake", "SORTIE_DEAD_LETTERS": "arn:aws:sqs:eu-central-1:210987654321:sortie-dev-dead-letters",
	"SORTIE_STATE_MACHINE":  "arn:aws:states:eu-central-1:210987654321:stateMachine:sortie-dev-run",
	"SORTIE_KEYS":           "11111111-2222-4333-8444-555555555555,66666666-7777-4888-9999-000000000000",
	"SORTIE_UPLOADS_BUCKET": "uploads", "SORTIE_ACCEPTED_BUCKET": "kept", "SORTIE_OUTPUTS_ENDPOINT": "https://s3.example",
	"SORTIE_FLY_APPS": "app-a,app-b", "SORTIE_FLY_URL": "https://machines.example",
	"SORTIE_KUBERNETES_CLUSTER": "east", "SORTIE_KUBERNETES_NAMESPACES": "runs,more",
	"SORTIE_PUBLIC_URL": "https://api.example/dev", "SORTIE_EVENT_SEED": "/sortie/dev/events", "SOURCE_API_URL": "https://source.example", "SORTIE_REDIRECT_OVER": "8388608",
	"SORTIE_STREAMING": "buffered", "SORTIE_CANARY_PI": "01K9XVBAQZF9EHDRXGBEADTZYY", "SORTIE_PLAIN_ITEMS": "true", "SORTIE_VERSION": "v1",
	"SORTIE_DELIVERIES": "https://sqs.eu-central-1.amazonaws.com/210987654321/sortie-dev-deliveries",
	"SORTIE_PUSHES":     "https://sqs.eu-central-1.amazonaws.com/210987654321/sortie-dev-pushes.fifo", "SORTIE_SOCKETS_URL": "https://a1b2c3.execute-api.eu-central-1.amazonaws.com/dev",
	"SORTIE_DISPATCH": "arn:aws:lambda:eu-central-1:210987654321:function:sortie-dev-dispatch",
	"SORTIE_READERS":  "50", "SORTIE_READERS_TOTAL": "90",
	"OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example", "OTEL_EXPORTER_OTLP_TIMEOUT": "1500",
}

// built builds all programs.
var built = sync.OnceValues(func() (string, error) {
	names, err := programs()
	if err != nil {
		return "", err
	}
	return bootstraps.Build(context.Background(), names...)
})

// build returns the folder with the built programs, at NAME/bootstrap.
func build(t *testing.T) string {
	t.Helper()
	folder, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// check runs the function's program with -check and only the variables of env.
func check(t *testing.T, name string, env []string) (out, problems []string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(build(t), functions(t)[name], "bootstrap"), "-check")
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return strings.Fields(stdout.String()), strings.Split(strings.TrimSpace(stderr.String()), "\n"), cmd.ProcessState.ExitCode()
}

// valid returns the named variables with valid values.
func valid(names ...string) []string {
	var env []string
	for _, name := range names {
		value := values[name]
		if kind, secret := strings.CutPrefix(name, "SORTIE_SECRET_"); secret {
			value = secrets.Name(values["SORTIE_STAGE"], strings.ToLower(kind))
		}
		env = append(env, name+"="+value)
	}
	return env
}

// environment returns every variable with a valid value.
func environment(t *testing.T, function string) []string {
	t.Helper()
	names := slices.Collect(maps.Keys(values))
	for _, kind := range secrets.Kinds() {
		names = append(names, "SORTIE_SECRET_"+strings.ToUpper(kind))
	}
	return append(valid(names...), stepOf(t, function)...)
}

// stepOf returns the variable that selects a step function.
func stepOf(t *testing.T, function string) []string {
	t.Helper()
	if functions(t)[function] != "steps" {
		return nil
	}
	return []string{"SORTIE_STEP=" + function}
}

// TestFunctionsNameMissingVariables checks that a function reports all missing required
// variables at once, and that it starts with exactly those.
func TestFunctionsNameMissingVariables(t *testing.T) {
	t.Parallel()
	for name := range functions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, problems, code := check(t, name, environment(t, name))
			if code != 0 {
				t.Errorf("with all variables: got exit code %d and problems %q, want 0", code, problems)
			}
			_, problems, code = check(t, name, stepOf(t, name))
			if code != 2 {
				t.Errorf("without variables: got exit code %d, want 2", code)
			}
			var missing []string
			for _, problem := range problems {
				variable, ok := strings.CutSuffix(problem, " is not set")
				if !ok || !slices.Contains(read, variable) {
					t.Errorf("without variables: got problem %q, want \"X is not set\" with X one of %v", problem, read)
				}
				missing = append(missing, variable)
			}
			for address, users := range map[string][]string{
				"SORTIE_PUBLIC_URL": {"canary", "console", "launch", "relay", "supervise", "sweep"}, "SOURCE_API_URL": nil, "SORTIE_FLY_APPS": nil,
			} {
				if got, want := slices.Contains(missing, address), slices.Contains(users, name); got != want {
					t.Errorf("%s: got required %v, want %v", address, got, want)
				}
			}
			if _, problems, code = check(t, name, append(valid(missing...), stepOf(t, name)...)); code != 0 {
				t.Errorf("with the variables %v: got exit code %d and problems %q, want 0", missing, code, problems)
			}
		})
	}
}

func TestUnknownStepIsAProblem(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{
		"":       "SORTIE_STEP is not set",
		"launhc": `SORTIE_STEP: "launhc" is not a step function, want one of ` + strings.Join(steps.Functions(), ", "),
	} {
		env := slices.DeleteFunc(environment(t, "admit"), func(v string) bool { return strings.HasPrefix(v, "SORTIE_STEP=") })
		if _, problems, code := check(t, "admit", append(env, "SORTIE_STEP="+step)); code != 2 || !slices.Equal(problems, []string{want}) {
			t.Errorf("got exit code %d and problems %q, want 2 and %q", code, problems, want)
		}
	}
}

func TestProgramsLinkWhatTheyUse(t *testing.T) {
	t.Parallel()
	names, err := programs()
	if err != nil || len(names) == 0 {
		t.Fatalf("got the programs %q, %v, want some", names, err)
	}
	list := []string{"list", "-tags", "lambda.norpc", "-f", `{{.ImportPath}} {{join .Deps " "}}`}
	for _, name := range names {
		list = append(list, "github.com/sortie-dev/sortie/functions/"+name+"/bootstrap")
	}
	text, err := exec.CommandContext(t.Context(), "go", list...).Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		program, deps, _ := strings.Cut(line, " ")
		linked[path.Base(path.Dir(program))] = strings.Fields(deps)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deps := linked[name]
			if len(deps) == 0 {
				t.Fatal("got no dependencies, want some")
			}
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

// TestFunctionsServe runs each function against a fake of Lambda's Runtime API. The function
// starts without a call to AWS and answers an invalid event with InvalidInput.
func TestFunctionsServe(t *testing.T) {
	t.Parallel()
	for name := range functions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aws := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("got a call of AWS: %s %s, want none", r.Method, r.URL)
			}))
			t.Cleanup(aws.Close)
			made := serve(t, name, "[]", append(environment(t, name), "AWS_ENDPOINT_URL="+aws.URL), nil)
			if !strings.Contains(made.answer, `"errorType":"InvalidInput"`) {
				t.Errorf("got answer %q, want InvalidInput; log: %s", made.answer, made.logs)
			}
			for _, want := range []string{`"function":"` + name + `"`, `"request_id":"request-1"`, `"cold_start":true`, `"version":"3"`, `"init_ms":`} {
				if !strings.Contains(made.logs, want) {
					t.Errorf("got log %s, want %s in it", made.logs, want)
				}
			}
			if usage, ok := made.state.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" {
				t.Logf("first event requested after %d ms, at most %d MB resident", made.init.Milliseconds(), usage.Maxrss>>10)
			}
		})
	}
}
