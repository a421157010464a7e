//go:build unix

package runners

import (
	"bytes"
	"context"
	"embed"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/daemons"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/command"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// The images of the job files. Image runs package program, and Broken runs BrokenProgram, both
// under sortie-exec. Plain runs package program without it. No platform has the image of the
// job missing-image.
const (
	Image  = "localhost/sortie-program:1"
	Plain  = "localhost/sortie-plain:1"
	Broken = "localhost/sortie-broken:1"
)

// BrokenProgram is a program that cannot start, because its interpreter is missing.
const BrokenProgram = "#!/nonexistent/interpreter\n"

//go:embed jobs/*.yaml
var files embed.FS

// Difference is a result on one platform that differs from the others.
type Difference struct {
	// Reason says why the result differs.
	Reason string
	// End is the result there; nil if the platform cannot run the job.
	End *End
}

// FirstProcess is the reason for a difference in containers.
const FirstProcess = "the program that is to be killed is the first process of its container, which the kernel protects from the container's own signals"

// Platform is a platform under a stack.
type Platform struct {
	// Runner is the runner of the pool "default".
	Runner string
	// Given configures the stack. Change makes further changes to the configuration.
	Given  stacktest.Config
	Change func(*stack.Config)
	// Left returns the platform's resources of a task's run. at are the addresses of the stack.
	Left func(ctx context.Context, at stack.Addresses, task string) ([]string, error)
	// Plain replaces the images with sortie-exec by Plain, which does not have it.
	Plain bool
	// AtOnce limits the concurrent job files; 0 means no limit.
	AtOnce int
	// Differs are the differences, by job name.
	Differs map[string]Difference
}

// kept is how long the platforms keep the resources of a gone machine.
const kept = 5 * time.Second

// Run starts a stack and runs all job files on it.
func Run(t *testing.T, p Platform) {
	t.Helper()
	s := start(t, p)
	known := map[string]bool{}
	atOnce := p.AtOnce
	if atOnce == 0 {
		atOnce = len(Cases())
	}
	turns := make(chan struct{}, atOnce)
	for _, c := range Cases() {
		known[c.Job] = true
		t.Run(c.Job, func(t *testing.T) {
			t.Parallel()
			if d, differs := p.Differs[c.Job]; differs {
				t.Logf("differs: %s", d.Reason)
				if d.End == nil {
					return
				}
				c.End = *d.End
			}
			turns <- struct{}{}
			defer func() { <-turns }()
			s.run(t, c)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Differs)) {
		if !known[name] {
			t.Errorf("got a difference of the unknown job %s", name)
		}
	}
}

// system is a stack with a pool on the platform.
type system struct {
	Platform
	at    stack.Addresses
	token string
}

func start(t *testing.T, p Platform) *system {
	t.Helper()
	log := &stacktest.Log{}
	p.Given.Data = t.TempDir()
	settings := map[string]string{"SORTIE_FURTHER_STARTS": "0"}
	maps.Copy(settings, p.Given.Settings)
	p.Given.Settings = settings
	config, err := p.Given.Stack(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	config.KeepMachines = kept
	if p.Change != nil {
		p.Change(&config)
	}
	running, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(context.Background()); err != nil {
			t.Errorf("stop: got error %v", err)
		}
		if t.Failed() {
			t.Logf("log of the stack:\n%s", log)
		}
		if err := log.Secrets(); err != nil {
			t.Error(err)
		}
	})
	s := &system{Platform: p, at: running.Addresses()}
	token, err := os.ReadFile(s.at.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(token))
	if got := s.client(t).Call(http.MethodPut, "/v1/pools/default", `{"limit": 0, "runner": "`+p.Runner+`"}`); got.Status >= http.StatusMultipleChoices {
		t.Fatalf("got %d %s, want the pool changed", got.Status, got.Body)
	}
	return s
}

func (s *system) client(t *testing.T) *outside.Client {
	return &outside.Client{T: t, URL: s.at.URL, Token: s.token}
}

// run runs the job file with the command line and compares the result.
func (s *system) run(t *testing.T, c Case) {
	t.Helper()
	document, err := files.ReadFile("jobs/" + c.Job + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if s.Plain {
		document = bytes.ReplaceAll(document, []byte(Image), []byte(Plain))
	}
	mark := daemons.NewMark(t)
	document = bytes.ReplaceAll(document, []byte("$MARK"), []byte(mark))
	dir := t.TempDir()
	file := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-f", file, "--url", s.at.URL}
	if c.Output != "" {
		args = append(args, "--output", filepath.Join(dir, "output"))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stderr stacktest.Log
	stdout := &watched{word: "begun", seen: make(chan struct{})}
	ended := make(chan int, 1)
	go func() {
		ended <- command.Main(ctx, cli.Program{
			Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: &stderr, Clock: clock.System{}, Random: rand.Uint64, Executable: []string{os.Args[0]},
			Env: func(name string) (string, bool) { return s.token, name == "SORTIE_TOKEN" },
		})
	}()
	if c.Cancel {
		select {
		case exit := <-ended:
			t.Fatalf("got exit code %d and %s, want a run to cancel", exit, stderr.String())
		case <-stdout.seen:
		}
		// The output can arrive before the store records that the program runs.
		task, _, _ := strings.Cut(stderr.String(), "\n")
		s.client(t).Running(task)
		interrupt()
	}
	exit, said := <-ended, stderr.String()
	if alive := daemons.Alive(mark); !s.Plain && len(alive) > 0 {
		t.Errorf("got the processes %v alive after the end of the run, want none", alive)
	}
	task, _, _ := strings.Cut(said, "\n")
	run := outside.Get[contract.Task](s.client(t), "/v1/runs/"+task)
	t.Logf("%s: exit %d, %s, stderr %q", c.Job, exit, outside.Encode(t, run), said)
	s.compare(t, c.End, exit, run)
	if c.Output != "" {
		if text, err := os.ReadFile(filepath.Join(dir, "output")); err != nil || string(text) != c.Output {
			t.Errorf("got output %q, %v, want %q", text, err, c.Output)
		}
	}
	s.compareLog(t, c.End, run, stdout.String(), said)
	s.nothingLeft(t, run.TaskID, mark)
}

// watched is a buffer that waits for a word.
type watched struct {
	stacktest.Log
	word string
	seen chan struct{} // closed when the word was written
	once sync.Once
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Log.Write(p)
	if strings.Contains(w.String(), w.word) {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}
