package prerequisites

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// machine returns a host with these programs, each a shell script with the body, and the folder
// of the programs.
func machine(t *testing.T, programs map[string]string) (host Host, bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, body := range programs {
		install(t, filepath.Join(bin, name), body)
	}
	env := map[string]string{"PATH": bin, "HOME": t.TempDir()}
	return Host{
		Arch:    "amd64",
		Environ: []string{"PATH=" + bin},
		Env: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		},
	}, bin
}

func install(t *testing.T, file, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	// A fork while the file is open for writing would make the file busy.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func whole() map[string]string {
	return map[string]string{
		"python3.13": "echo 3.13",
		"java":       `echo 'openjdk version "17.0.15" 2025-04-15' >&2`,
		"mvn":        "", "go": "", "npm": "",
		"node":   "echo v20.20.2",
		"docker": "echo 28.0.1",
	}
}

func TestCompleteHost(t *testing.T) {
	t.Parallel()
	host, bin := machine(t, whole())
	tools, err := host.Python(t.Context())
	want := Tools{
		Python: bin + "/python3.13", Java: bin + "/java", Maven: bin + "/mvn",
		Go: bin + "/go", Node: bin + "/node", NPM: bin + "/npm",
	}
	if err != nil || tools != want {
		t.Errorf("Python: %+v, %v", tools, err)
	}
	tools, err = host.Docker(t.Context())
	want = Tools{Docker: bin + "/docker", Go: bin + "/go", Node: bin + "/node", NPM: bin + "/npm"}
	if err != nil || tools != want {
		t.Errorf("Docker: %+v, %v", tools, err)
	}
}

func TestEverythingMissingIsReported(t *testing.T) {
	t.Parallel()
	host, _ := machine(t, nil)
	host.Arch = "arm64"
	for _, row := range []struct {
		way  string
		find func() error
		want []string
	}{
		{"python", func() error { _, err := host.Python(t.Context()); return err }, []string{
			"Go:", "npm,", "Node 20 or newer:", "Python 3.13 with venv:", "pyenv install 3.13", "PYTHON313", "17 or newer", "Maven", "(this is arm64)", "LOCALSTACK=docker",
		}},
		{"docker", func() error { _, err := host.Docker(t.Context()); return err }, []string{"Go:", "npm,", "Node 20 or newer:", "Docker's command line"}},
	} {
		t.Run(row.way, func(t *testing.T) {
			t.Parallel()
			err := row.find()
			if _, ok := errors.AsType[Missing](err); !ok {
				t.Fatalf("error %v", err)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestOldProgramIsMissing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ program, body, want string }{
		"node":                     {"node", "echo v18.19.0", `printed "v18.19.0"`},
		"node that fails":          {"node", "exit 1", "Node 20 or newer"},
		"java":                     {"java", `echo 'java version "1.8.0_381"' >&2`, `printed "java version \"1.8.0_381\""`},
		"broken java":              {"java", "echo 'Unable to locate a Java Runtime' >&2; exit 1", "Unable to locate"},
		"python":                   {"python3.13", "echo 3.12", "Python 3.13 with venv:"},
		"python without ensurepip": {"python3.13", "echo ModuleNotFoundError >&2; exit 1", "apt install python3.13-venv"},
		"maven":                    {"mvn", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			programs := whole()
			programs[row.program] = row.body
			host, _ := machine(t, programs)
			_, err := host.Python(t.Context())
			if row.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%q is not in: %v", row.want, err)
			}
		})
	}
}

func TestDockerWithoutEngine(t *testing.T) {
	t.Parallel()
	programs := whole()
	programs["docker"] = "echo 'Cannot connect to the Docker daemon'; exit 1"
	host, _ := machine(t, programs)
	if _, err := host.Docker(t.Context()); err == nil || !strings.Contains(err.Error(), "a running Docker engine") {
		t.Errorf("error %v", err)
	}
}

func TestPythonLookup(t *testing.T) {
	t.Parallel()
	without := func() map[string]string {
		programs := whole()
		delete(programs, "python3.13")
		programs["python3"] = "echo 3.11"
		return programs
	}
	elsewhere := filepath.Join(t.TempDir(), "bin", "python")
	install(t, elsewhere, "echo 3.13")
	for name, row := range map[string]struct {
		place func(t *testing.T, host *Host, bin string) string
	}{
		"named by PYTHON313": {func(_ *testing.T, host *Host, _ string) string {
			set(host, "PYTHON313", elsewhere)
			return elsewhere
		}},
		"python3 itself": {func(t *testing.T, _ *Host, bin string) string {
			t.Helper()
			install(t, filepath.Join(bin, "python3"), "echo 3.13")
			return filepath.Join(bin, "python3")
		}},
		"pyenv at home": {func(t *testing.T, host *Host, _ string) string {
			t.Helper()
			home, _ := host.Env("HOME")
			install(t, filepath.Join(home, ".pyenv/versions/3.13.0/bin/python"), "echo 3.13")
			return filepath.Join(home, ".pyenv/versions/3.13.0/bin/python")
		}},
		"pyenv elsewhere": {func(t *testing.T, host *Host, _ string) string {
			t.Helper()
			root := t.TempDir()
			set(host, "PYENV_ROOT", root)
			install(t, filepath.Join(root, "versions/3.13.2/bin/python"), "echo 3.13")
			return filepath.Join(root, "versions/3.13.2/bin/python")
		}},
		"uv": {func(t *testing.T, _ *Host, bin string) string {
			t.Helper()
			install(t, filepath.Join(bin, "uv"), "echo "+elsewhere)
			return elsewhere
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, bin := machine(t, without())
			want := row.place(t, &host, bin)
			tools, err := host.Python(t.Context())
			if err != nil || tools.Python != want {
				t.Errorf("found %q, want %q: %v", tools.Python, want, err)
			}
		})
	}
}

func TestWrongPYTHON313(t *testing.T) {
	t.Parallel()
	host, _ := machine(t, whole())
	set(&host, "PYTHON313", "/nowhere/python")
	if _, err := host.Python(t.Context()); err == nil || !strings.Contains(err.Error(), "/nowhere/python") {
		t.Errorf("error %v", err)
	}
}

func TestPython27(t *testing.T) {
	t.Parallel()
	host, bin := machine(t, map[string]string{"python3": "echo 'pip 24.0 from /lib (python 3.13)'"})
	if file, err := host.Python27(t.Context()); err == nil || !strings.Contains(err.Error(), "pyenv install 2.7") {
		t.Errorf("got %q, %v, want how to install it", file, err)
	}
	want := filepath.Join(bin, "python2.7")
	install(t, want, "echo 'pip 19.2.3 from /lib (python 2.7)'")
	if file, err := host.Python27(t.Context()); err != nil || file != want {
		t.Errorf("got %q, %v, want %q", file, err, want)
	}
}

func set(host *Host, name, value string) {
	before := host.Env
	host.Env = func(asked string) (string, bool) {
		if asked == name {
			return value, true
		}
		return before(asked)
	}
}
