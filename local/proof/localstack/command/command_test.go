package command

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/localstack/deployment"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// call runs a command with an empty cache and without host programs, and returns the exit code
// and output.
func call(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	all := map[string]string{"LOCALSTACK_CACHE": t.TempDir(), "PATH": t.TempDir(), "HOME": t.TempDir()}
	maps.Copy(all, env)
	var out, problems bytes.Buffer
	code = Main(t.Context(), Program{
		Args: args, Stdout: &out, Stderr: &problems, Clock: clock.System{}, Executable: "localstack",
		Env: func(name string) (string, bool) { value, ok := all[name]; return value, ok },
	})
	return code, out.String(), problems.String()
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env  map[string]string
		args []string
		want []string
	}{
		"no programs":        {nil, []string{"start"}, []string{"this machine lacks:", "Python 3.13", "Maven", "Node 20", "openjdk"}},
		"no Docker":          {map[string]string{"LOCALSTACK": "docker"}, []string{"test"}, []string{"this machine lacks:", "Docker's command line"}},
		"another way":        {map[string]string{"LOCALSTACK": "podman"}, []string{"start"}, []string{`"podman"`, "python or docker"}},
		"no port":            {map[string]string{"LOCALSTACK_PORT": "none"}, []string{"start"}, []string{`"none"`, "LOCALSTACK_PORT"}},
		"nothing runs":       {map[string]string{"LOCALSTACK_PORT": "1"}, []string{"status"}, []string{"make localstack"}},
		"an unknown command": {nil, []string{"begin"}, []string{"begin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, said := call(t, row.env, row.args...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range row.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in: %s", want, said)
				}
			}
		})
	}
}

func TestStopWithoutServer(t *testing.T) {
	t.Parallel()
	if code, _, said := call(t, map[string]string{"LOCALSTACK_PORT": "1"}, "stop"); code != 0 || !strings.Contains(said, "port 1") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestEnv checks that env prints the variables of an AWS client before a deployment, and
// afterwards also variables of the deployment.
func TestEnv(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{"LOCALSTACK_CACHE": dir, "LOCALSTACK_PORT": "4999"}
	code, out, _ := call(t, env, "env")
	if code != 0 || !strings.Contains(out, "AWS_ENDPOINT_URL=http://127.0.0.1:4999\n") || strings.Contains(out, "SORTIE") {
		t.Errorf("exit code %d: %s", code, out)
	}
	work := filepath.Join(dir, "server-4999", "deployment")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	outputs := `{"sortie-` + stage + `": {"URL": "http://there/local", "UploadsBucket": "uploads"}}`
	if err := os.WriteFile(filepath.Join(work, "outputs.json"), []byte(outputs), 0o600); err != nil {
		t.Fatal(err)
	}
	_, out, _ = call(t, env, "env")
	for _, want := range []string{
		"SORTIE_URL=http://there/local\n", "SORTIE_TOKEN=" + deployment.ClientToken + "\n", "SORTIE_MACHINES_ADDR=127.0.0.1:5999\n",
		"SORTIE_SOURCE_ADDR=127.0.0.1:6000\n", "SORTIE_UPLOADS_BUCKET=uploads\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in: %s", want, out)
		}
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var problems bytes.Buffer
	code := Main(ctx, Program{
		Args: []string{"start"}, Stdout: &problems, Stderr: &problems, Clock: clock.System{},
		Env: func(string) (string, bool) { return "", false },
	})
	if code != 130 {
		t.Errorf("exit code %d: %s", code, &problems)
	}
}

// Adapters without a LocalStack test are left out.
func TestAdapterTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, file := range []string{
		"shared/adapter/dynamo/port_localstack_test.go", "shared/adapter/dynamo/localstack_test.go", "shared/adapter/kms/localstack_test.go",
		"shared/adapter/fly/runner_test.go", "local/proof/port/awsfake/localstack_test.go",
	} {
		name := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alone, table, err := adapterTests(place{repository: dir})
	if err != nil || strings.Join(alone, " ") != "./shared/adapter/kms" || strings.Join(table, " ") != "./shared/adapter/dynamo ./local/proof/port/awsfake" {
		t.Errorf("%v, %v, %v", alone, table, err)
	}
	if _, _, err := adapterTests(place{repository: t.TempDir()}); err == nil {
		t.Error("no test is no error")
	}
}
