//go:build localstack

package acceptance

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// breaks replaces functions, in sequence, by ones that fail with an unexpected error. It does
// not restore them, so this must be the last test of a deployment.
func (w *world) breaks(t *testing.T) {
	code := broken(t)
	t.Run("without supervise, terminate ends the run", func(t *testing.T) {
		w.replace(t, "supervise", code)
		if status := w.broken(t, "breaks.supervise"); status.State != "Failed" {
			t.Errorf("got %+v", status)
		}
	})
	t.Run("without supervise and terminate, the sweep orphans the run", func(t *testing.T) {
		w.replace(t, "terminate", code)
		if status := w.broken(t, "breaks.terminate"); status.State != "Orphaned" {
			t.Errorf("got %+v", status)
		}
	})
}

// broken runs a worker that never ends, waits for the end of its run, and checks that no
// machine is left.
func (w *world) broken(t *testing.T, batch string) contract.Status {
	t.Helper()
	client := patient{w, batch}
	w.target.Scripts.Set(t, batch, "wait:"+scripts.Pipe(t))
	task, err := client.begin(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	status, err := client.end(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	for {
		machines, err := w.target.Machines.Of(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		live := 0
		for _, m := range machines {
			if m.State != "destroyed" {
				live++
			}
		}
		if live == 0 {
			return status
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: leftover machines %v", task, machines)
		case <-time.After(between):
		}
	}
}

// replace replaces the code of a function.
func (w *world) replace(t *testing.T, name string, code []byte) {
	t.Helper()
	input := struct{ ZipFile []byte }{code}
	awstest.Prepare(t, w.aws, "PUT /2015-03-31/functions/"+w.function(name)+"/code", input, nil)
}

// broken builds the program broken and returns it as a ZIP file.
func broken(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bootstrap")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", file, "./broken")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	writer := zip.NewWriter(&packed)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	entry, err := writer.CreateHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
