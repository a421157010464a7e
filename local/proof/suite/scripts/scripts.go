// Package scripts has the scripts of the suite's workers, and the pipes at which they wait.
package scripts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
)

// WorkerName is the argument with which a test binary runs Worker. Its TestMain
// registers the program.
const WorkerName = "player"

// Folder is a folder with the scripts of workers. The file name of a script is BATCH_ID, which
// every export passes to its worker. It works for machines that are processes of this host.
type Folder struct{ dir string }

// In returns the scripts in an existing folder.
func In(dir string) *Folder { return &Folder{dir} }

// Image returns the command of the worker's image in a machines API that runs processes: the
// test binary as Worker.
func (s *Folder) Image(executable string) []string {
	return []string{executable, WorkerName, s.dir}
}

// Set stores the script for the workers of a batch; see stacktest.Play.
func (s *Folder) Set(t *testing.T, batch, play string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, batch), []byte(play), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Worker runs the script of its batch, or the export worker if the batch has no script.
// environ is the environment of the process.
func Worker(environ []string) stacktest.Program {
	return func(words []string, env map[string]string) int {
		if len(words) != 1 {
			fmt.Fprintln(os.Stderr, "missing argument: the folder of the scripts")
			return 2
		}
		if play, err := os.ReadFile(filepath.Join(words[0], filepath.Base(env["BATCH_ID"]))); err == nil {
			return stacktest.Play(strings.Fields(string(play)), env)
		}
		return worker.Main(context.Background(), environ, os.Stderr)
	}
}

// Pipe creates a named pipe at which a worker waits until Release. The end of the test also
// releases it, because the workers of a failed test would hold their slots.
func Pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Release(t, name) })
	return name
}

// Release unblocks all current and future readers of the pipe.
func Release(t *testing.T, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
		t.Fatal(err)
	}
}
