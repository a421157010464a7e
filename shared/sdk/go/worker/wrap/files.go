package wrap

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// inputsFile writes the inputs of the run to a file. It returns the path; empty without inputs, or
// if the file cannot be written.
func (w *wrapper) inputsFile() string {
	text, ok := w.variable(contract.InputsVariable)
	if !ok {
		return ""
	}
	name, err := tempFile("sortie-inputs-*.json", text)
	if err != nil {
		w.fail("no file with the inputs, which are also in %s: %v", contract.InputsVariable, err)
	}
	return name
}

// upstreamFile writes the description of the runs that the run came after to a file. It returns the
// path; empty for a run that came after none. A description that is in no variable must be read:
// otherwise the error is a worker.Failure.
func (w *wrapper) upstreamFile(ctx context.Context, t *worker.Task) (string, error) {
	if text, ok := w.variable(contract.UpstreamVariable); ok {
		name, err := tempFile("sortie-upstream-*.json", text)
		if err != nil {
			w.fail("no file with the upstream runs, which are also in %s: %v", contract.UpstreamVariable, err)
		}
		return name, nil
	}
	url, ok := w.variable(contract.UpstreamURLVariable)
	if !ok {
		return "", nil
	}
	text, err := t.Fetch(ctx, "the upstream runs", url)
	if err != nil {
		return "", err
	}
	name, err := tempFile("sortie-upstream-*.json", string(text))
	if err != nil {
		return "", worker.Fail(contract.CategoryInfrastructure, true, err)
	}
	return name, nil
}

// variable returns an environment variable of the wrapper.
func (w *wrapper) variable(name string) (value string, ok bool) {
	for _, entry := range w.environ {
		if value, ok = strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// tempFile writes a file that only this user can read, and returns its path; empty after an error.
func tempFile(pattern, text string) (string, error) {
	file, err := os.CreateTemp("", pattern)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}
