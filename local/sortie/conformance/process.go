//go:build unix

package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/flymachines/environment"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// process is the running worker, in its own process group and folder.
type process struct {
	cmd    *exec.Cmd
	dir    string
	output output
	ended  chan struct{}
	at     time.Time // when it ended
}

// output keeps the first 4 MiB of a worker's output.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxOutput = 4 << 20

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p[:min(len(p), maxOutput-min(maxOutput, o.text.Len()))])
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts the worker like a machine of the local system: with the same variables, PATH
// and current folder.
func launch(c Config, plane *Plane, scenario string) (*process, error) {
	argv, err := environment.ResolveCommand(c.Command)
	if err != nil {
		return nil, fmt.Errorf("cannot start the worker: %w", err)
	}
	dir, err := os.MkdirTemp("", "sortie-check-")
	if err != nil {
		return nil, fmt.Errorf("cannot start the worker: %w", err)
	}
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), dir: dir, ended: make(chan struct{})} //nolint:gosec,noctx // the caller's command, ended by stop
	place := environment.Placement{
		App: "arke-mods-export-worker", MachineID: "d8dcheck000000", PrivateIP: "fdaa:0:0::2", Region: "ord", Image: "check", Version: "1",
		ProcessGroup: "app", MemoryMB: 256, Path: environment.DefaultPath,
		Root: filepath.Join(dir, "root"), Tmp: filepath.Join(dir, "tmp"),
	}
	for _, folder := range []string{place.Root, place.Tmp} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot start the worker: %w", err), os.RemoveAll(dir))
		}
	}
	configured, err := variables(plane, scenario, c.Environ)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	env := place.Environment(configured)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p.cmd.Env = append(p.cmd.Env, name+"="+env[name])
	}
	p.cmd.Dir = place.Root
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the worker: %w", err), os.RemoveAll(dir))
	}
	go func() {
		_ = p.cmd.Wait()
		p.at = c.Clock.Now()
		close(p.ended)
	}()
	return p, nil
}

// variables returns the environment of the export contract (EC-10), with the envelope and the
// caller's additions.
func variables(plane *Plane, scenario string, more []string) (map[string]string, error) {
	envelope, err := plane.Variable()
	if err != nil {
		return nil, err
	}
	env := map[string]string{
		"TASK_ID": plane.envelope.TaskID, "BATCH_ID": "single", "PI": samples.SampleRoot, "EXPORT_FORMAT": "mods",
		"EXPORT_OPTIONS": `{"recursive":false,"maxDepth":5,"parallelBatchSize":10,"includeOcr":true,"cheimarrosMode":"full"}`,
		"R2_ACCOUNT_ID":  "local", "R2_ACCESS_KEY_ID": plane.keyID, "R2_SECRET_ACCESS_KEY": plane.key,
		"R2_BUCKET": bucketName, "R2_ENDPOINT": plane.address + "/s3", "R2_REGION": "auto",
		"CALLBACK_URL": plane.callbackURL, "SOURCE_API_URL": plane.address + "/source", "SORTIE_CHECK": scenario,
		contract.TraceParentVariable: plane.envelope.TraceParent,
		contract.EnvelopeVariable:    strings.TrimPrefix(envelope, contract.EnvelopeVariable+"="),
	}
	for _, entry := range more {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env, nil
}

// terminate sends SIGTERM to the first process, as the platform does.
func (p *process) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// stop kills the process group, waits for the worker and removes its folder.
func (p *process) stop() {
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = p.cmd.Process.Kill()
	}
	<-p.ended
	_ = os.RemoveAll(p.dir)
}
