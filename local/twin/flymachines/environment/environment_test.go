package environment_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/flymachines/environment"
)

func TestResolveCommand(t *testing.T) { //nolint:paralleltest // it changes the current folder
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	for _, name := range []string{"bin/tool", "run.sh", "data/a.csv"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o700); err != nil { //nolint:gosec // a program is executable
			t.Fatal(err)
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ argv, want []string }{
		"program of the PATH":  {[]string{"tool", "-v"}, []string{dir + "/bin/tool", "-v"}},
		"relative program":     {[]string{"./run.sh"}, []string{dir + "/run.sh"}},
		"relative file":        {[]string{"tool", "run.sh", "data/a.csv"}, []string{dir + "/bin/tool", dir + "/run.sh", dir + "/data/a.csv"}},
		"folder and no file":   {[]string{"tool", "data", "missing.csv", "."}, []string{dir + "/bin/tool", "data", "missing.csv", "."}},
		"absolute and options": {[]string{"tool", "/etc", "--file=run.sh", ""}, []string{dir + "/bin/tool", "/etc", "--file=run.sh", ""}},
	} {
		got, err := environment.ResolveCommand(row.argv)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, row.want)
		}
	}
	if _, err := environment.ResolveCommand([]string{"missing"}); err == nil {
		t.Error("missing program: got no error")
	}
}

func TestProgramOfTheHostIsPartOfNoApp(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]bool{"exec:/bin/true": false, "registry.fly.io/reports:latest": true} {
		env := environment.Placement{App: "reports", MachineID: "1", Image: image}.Environment(nil)
		if _, got := env["FLY_APP_NAME"]; got != want || env[environment.MachineVariable] != "1" {
			t.Errorf("%s: got %q, want FLY_APP_NAME: %t", image, env, want)
		}
	}
}
