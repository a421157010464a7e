package suite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/functions/worker/program"
	"github.com/sortie-dev/sortie/local/twin/stacktest"
)

// WordPlayer makes a test binary whose TestMain has Player the program of the
// worker's image.
const WordPlayer = "player"

// Stage is a folder in which workers find what they are to do: BATCH_ID, which
// every export carries to its worker, names the file with its play. It is for
// machines that are processes of this host.
type Stage struct{ dir string }

// NewStage makes a stage in the folder, which exists.
func NewStage(dir string) *Stage { return &Stage{dir} }

// Image is what the worker's image is to be bound to, in a machines API whose
// machines are processes: this test binary as the Player of the stage.
func (s *Stage) Image(executable string) []string { return []string{executable, WordPlayer, s.dir} }

// Set says what the workers of a batch do: see stacktest.Play.
func (s *Stage) Set(t *testing.T, batch, play string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, batch), []byte(play), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Player is the worker of a stage: it plays what its batch has to, and is the
// export worker where nothing is set. environ is the process's.
func Player(environ []string) stacktest.Program {
	return func(words []string, env map[string]string) int {
		if len(words) != 1 {
			fmt.Fprintln(os.Stderr, "the player needs the folder of its stage")
			return 2
		}
		if play, err := os.ReadFile(filepath.Join(words[0], filepath.Base(env["BATCH_ID"]))); err == nil {
			return stacktest.Play(strings.Fields(string(play)), env)
		}
		return program.Main(context.Background(), environ, os.Stderr)
	}
}

// Pipe makes a named pipe that nobody writes to: a place to wait at.
func Pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Release lets everybody go on who waits for the pipe, now and later.
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
