package deployment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// cdklocal records its arguments and environment, and writes outputs like the CDK.
const cdklocal = `#!/bin/sh
echo "$@" >>"$HOME/calls"
env | grep -E '^(AWS|CDK)' >>"$HOME/env"
while [ $# -gt 0 ]; do
	if [ "$1" = --outputs-file ] && rm "$HOME/empty" 2>/dev/null; then echo '{}' >"$2"
	elif [ "$1" = --outputs-file ]; then echo '{"sortie-local": {"URL": "http://there/local", "ClientsSecret": "c", "FlySecret": "f"}}' >"$2"; fi
	shift
done
`

// setup returns a deployment of a small repository. Its programs only record their calls in the
// folder notes.
func setup(t *testing.T) (d Deployment, notes string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"admit", "worker", "sweep"} {
		write(t, filepath.Join(dir, "functions", name, "bootstrap", "main.go"), "package main")
	}
	write(t, filepath.Join(dir, "infra", "main.go"), "package main")
	write(t, filepath.Join(dir, "bin", "cdklocal"), cdklocal)
	write(t, filepath.Join(dir, "bin", "go"), "#!/bin/sh\necho $GOOS $GOARCH $CGO_ENABLED \"$@\" >>"+dir+"/builds\n")
	return Deployment{
		Repository: dir, Work: filepath.Join(dir, "work"), Server: "http://127.0.0.1:4566", OS: "linux",
		Tools: prerequisites.Tools{Go: filepath.Join(dir, "bin", "go"), Node: "/usr/bin/node"},
		CDK:   filepath.Join(dir, "bin"), Home: dir, Clock: clock.System{}, Say: func(string, ...any) {},
		Environ: []string{"PATH=/usr/bin:/bin", "AWS_PROFILE=production", "AWS_SESSION_TOKEN=x"},
		Stage:   "local", Machines: "http://127.0.0.1:5566", Settings: map[string]string{"SORTIE_RETRY_DELAY": "1s"},
	}, dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	// A fork while the file is open for writing would make the file busy.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	d, notes := setup(t)
	for range 2 {
		outputs, err := d.Run(t.Context())
		if err != nil || outputs["URL"] != "http://there/local" {
			t.Fatalf("%v, %v", outputs, err)
		}
	}
	calls := read(t, filepath.Join(notes, "calls"))
	for _, want := range []string{
		"synth --ci --quiet --app " + notes + "/infra/.cdk/infra ", "-c localstack=http://127.0.0.1:4566 ", "-c arch=" + runtime.GOARCH,
		"-c flyUrl=http://127.0.0.1:5566 ", `-c settings={"SORTIE_RETRY_DELAY":"1s"}`, "deploy --ci --all --app " + notes + "/work/cdk.out ",
	} {
		if strings.Count(calls, want) != 2 {
			t.Errorf("%q is not twice in:\n%s", want, calls)
		}
	}
	if strings.Count(calls, "bootstrap --ci aws://000000000000/us-east-1") != 1 {
		t.Errorf("it was not bootstrapped once:\n%s", calls)
	}
}

func TestDeployRepeatsWithoutOutputs(t *testing.T) {
	t.Parallel()
	d, notes := setup(t)
	write(t, filepath.Join(notes, "empty"), "")
	outputs, err := d.Run(t.Context())
	if err != nil || outputs["URL"] != "http://there/local" {
		t.Errorf("got %v, %v, want the outputs of the second deployment", outputs, err)
	}
	if calls := strings.Count(read(t, filepath.Join(notes, "calls")), "deploy --ci"); calls != 2 {
		t.Errorf("got %d deployments, want 2", calls)
	}
}

// The AWS keys and profile of the caller must not reach the CDK.
func TestNoAccountIsReached(t *testing.T) {
	t.Parallel()
	d, notes := setup(t)
	if _, err := d.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := read(t, filepath.Join(notes, "env"))
	if strings.Contains(env, "production") || strings.Contains(env, "SESSION") {
		t.Errorf("the CDK's environment is\n%s", env)
	}
	for _, want := range []string{"AWS_ENDPOINT_URL=http://127.0.0.1:4566\n", "AWS_ACCESS_KEY_ID=test\n", "AWS_CONFIG_FILE=/dev/null\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("%q is not in the CDK's environment\n%s", want, env)
		}
	}
}

func TestFunctionsAreBuiltForTheirSystem(t *testing.T) {
	t.Parallel()
	d, notes := setup(t)
	if err := d.buildAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	builds := strings.Split(strings.TrimSpace(read(t, filepath.Join(notes, "builds"))), "\n")
	slices.Sort(builds)
	prefix := "linux " + runtime.GOARCH + " 0 build -trimpath -buildvcs=false -tags lambda.norpc -ldflags -s -w "
	want := []string{
		"0 build -trimpath -buildvcs=false -o " + notes + "/infra/.cdk/infra .",
		prefix + "-o " + notes + "/infra/.build/" + runtime.GOARCH + "/admit/bootstrap ./functions/admit/bootstrap",
		prefix + "-o " + notes + "/infra/.build/" + runtime.GOARCH + "/sweep/bootstrap ./functions/sweep/bootstrap",
		prefix + "./functions/admit/bootstrap ./functions/sweep/bootstrap",
	}
	slices.Sort(want)
	if !slices.Equal(builds, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(builds, "\n"), strings.Join(want, "\n"))
	}
}

// A release is a file beside each function's file. The next deployment without a release
// removes it.
func TestReleaseMark(t *testing.T) {
	t.Parallel()
	d, notes := setup(t)
	var files []string
	for _, name := range []string{"admit", "sweep"} {
		built := filepath.Join(notes, "infra", ".build", runtime.GOARCH, name)
		if err := os.MkdirAll(built, 0o755); err != nil { // as a build does
			t.Fatal(err)
		}
		files = append(files, filepath.Join(built, "release"))
	}
	d.Release = "second"
	if err := d.buildAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(notes, "builds")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a release is built again: %v", err)
	}
	for _, file := range files {
		if text := read(t, file); text != "second" {
			t.Errorf("%s says %q", file, text)
		}
	}
	d.Release = ""
	if err := d.buildAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", file, err)
		}
	}
}

func TestFailedDeploymentShowsLog(t *testing.T) {
	t.Parallel()
	d, notes := setup(t)
	write(t, filepath.Join(notes, "bin", "cdklocal"), "#!/bin/sh\n[ $1 != deploy ] || { echo 'sortie-local | CREATE_FAILED | Sweep'; exit 1; }\n")
	if _, err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "CREATE_FAILED | Sweep") {
		t.Errorf("error %v", err)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	d, _ := setup(t)
	var mu sync.Mutex
	put := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input struct{ SecretId, SecretString string } //nolint:revive,staticcheck // the API's names
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &input); err != nil || r.Header.Get("X-Amz-Target") != "secretsmanager.PutSecretValue" {
			t.Errorf("%s %s: %v", r.Header.Get("X-Amz-Target"), body, err)
		}
		mu.Lock()
		defer mu.Unlock()
		put[input.SecretId] = input.SecretString
		_, _ = fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	d.Server = server.URL
	if err := d.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(put["sortie/local/clients"], `{"tokens":["localstack-client"],`) || put["sortie/local/fly"] != `{"token":"localstack-machines"}` {
		t.Errorf("put %q", put)
	}
}
