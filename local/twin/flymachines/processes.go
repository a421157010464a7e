package flymachines

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/flymachines/environment"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// Processes is the Starter of real programs. Each program runs under a supervisor, which
// outlives the server and kills all processes that the program started.
type Processes struct {
	// Command is the path of an executable, usually this one, and the arguments
	// with which it calls supervisor.Main.
	Command []string
	// Otherwise replaces Command while its file is missing, as for a moment during a build.
	// Empty means no replacement.
	Otherwise []string
	Clock     clock.Clock
}

// Start creates the machine's folders and files and runs the program.
func (s Processes) Start(p Program) (Process, error) {
	for _, dir := range []string{p.Root, p.Tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot create the machine's folders: %w", err)
		}
	}
	if err := writeFiles(p); err != nil {
		return nil, fmt.Errorf("cannot write the machine's files: %w", err)
	}
	spec := supervisor.Spec{
		Dir: p.Dir, Start: p.Start, Argv: slices.Clone(p.Argv), Env: environ(p.Env), Mark: machineMark(p), Cwd: p.Root, OutputLimit: p.OutputLimit,
	}
	if w := p.Wrapper; w != nil {
		spec.Wrapper = &supervisor.Wrapper{Flags: w.Flags, Env: environ(w.Env)}
	} else {
		spec.Argv[0] = locate(spec.Argv[0], p.Env["PATH"])
	}
	h, err := supervisor.Launch(s.Command, spec, s.Clock)
	if errors.Is(err, fs.ErrNotExist) && len(s.Otherwise) > 0 {
		h, err = supervisor.Launch(s.Otherwise, spec, s.Clock)
	}
	if err != nil {
		return nil, err
	}
	return process{h}, nil
}

// machineMark returns the environment entry that identifies the machine's processes.
func machineMark(p Program) proctree.Mark {
	return proctree.Mark(environment.MachineVariable + "=" + p.Env[environment.MachineVariable])
}

// environ returns the variables as "NAME=value", ordered by name.
func environ(variables map[string]string) []string {
	env := make([]string, 0, len(variables))
	for _, key := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, key+"="+variables[key])
	}
	return env
}

// Find returns the program's running supervisor, or the result that it left.
func (s Processes) Find(p Program) (Process, error) {
	h, err := supervisor.Find(p.Dir, p.Start, s.Clock)
	if err != nil || h == nil {
		return nil, err
	}
	return process{h}, nil
}

type process struct{ *supervisor.Handle }

func (p process) Wait() (Exit, error) {
	e, err := p.Handle.Wait()
	return Exit{Code: e.Code, Signal: e.Signal, Problem: e.Problem, At: e.At}, err
}

func writeFiles(p Program) (err error) {
	if len(p.Files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, file := range p.Files {
		if err := root.MkdirAll(filepath.Dir(file.Path), 0o700); err != nil {
			return err
		}
		mode := os.FileMode(file.Mode & 0o777)
		if mode == 0 {
			mode = 0o644
		}
		if err := root.WriteFile(file.Path, file.Data, mode); err != nil {
			return err
		}
		if err := root.Chmod(file.Path, mode); err != nil { // independent of the umask
			return err
		}
	}
	return nil
}

// locate resolves a bare name in the program's PATH. A name that is not found
// is returned unchanged and fails when it is run.
func locate(name, path string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, dir := range filepath.SplitList(path) {
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full
		}
	}
	return name
}
