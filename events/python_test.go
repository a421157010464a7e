package events_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
)

// maxVerifierLines keeps the Python verifier short enough to be read whole.
const maxVerifierLines = 61

// TestPythonVerifierAgrees runs verify.py and Verify on the same files.
func TestPythonVerifierAgrees(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import cryptography").Run()
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("python3 with the library cryptography does not run: %v", err)
		}
		t.Skipf("python3 with the library cryptography does not run: %v; install both", err)
	}
	if text, err := os.ReadFile("verify.py"); err != nil || bytes.Count(text, []byte("\n")) > maxVerifierLines {
		t.Fatalf("got %d lines, %v, want at most %d", bytes.Count(text, []byte("\n")), err, maxVerifierLines)
	}
	signer := key(t, 1)
	keys := keysOf(signer)
	folder := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	document, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := write("keys.json", document)
	lines := exported(t, signer, 23, 5)
	foreign := exported(t, key(t, 2), 3, 5)
	event := strings.Index(lines[8], `"payload":"`)
	for name, file := range map[string][]string{
		"whole":             lines,
		"from a checkpoint": lines[5:],
		"from an event":     lines[3:],
		"without its end":   lines[:20],
		"removed":           slices.Delete(slices.Clone(lines), 8, 9),
		"repeated":          slices.Insert(slices.Clone(lines), 8, lines[8]),
		"moved":             append(append(slices.Clone(lines[:8]), lines[9], lines[8]), lines[10:]...),
		"changed":           slices.Replace(slices.Clone(lines), 8, 9, lines[8][:event+20]+"AAAA"+lines[8][event+24:]),
		"another signer":    slices.Insert(slices.Clone(lines), 8, foreign[0]),
		"no checkpoint":     lines[:4],
		"one checkpoint":    lines[3:7],
		"empty":             nil,
	} {
		path := write(strings.ReplaceAll(name, " ", "-"), []byte(strings.Join(file, "\n")))
		proof, err := events.Verify(t.Context(), strings.NewReader(strings.Join(file, "\n")), keys)
		out, failed := exec.CommandContext(t.Context(), python, "verify.py", path, keyFile).CombinedOutput()
		want := fmt.Sprintf("%s: events %d to %d are complete, %d more are signed\n", proof.Origin, proof.From+1, proof.To, proof.Outside)
		if err == nil {
			end := fmt.Sprint(proof.To)
			if _, short := exec.CommandContext(t.Context(), python, "verify.py", path, keyFile, fmt.Sprint(proof.To+1)).Output(); short == nil || proof.Reach(proof.To+1) == nil {
				t.Errorf("%s: got a proof that reaches %d, want it to end at %s", name, proof.To+1, end)
			}
			if _, reached := exec.CommandContext(t.Context(), python, "verify.py", path, keyFile, end).Output(); reached != nil || proof.Reach(proof.To) != nil {
				t.Errorf("%s: got no proof that reaches %s: %v", name, end, reached)
			}
		}
		if (err == nil) != (failed == nil) || err == nil && string(out) != want {
			t.Errorf("%s: got %q, %v from Python, want what Verify returns: %q, %v", name, out, failed, want, err)
		}
	}
}

// exported returns the lines of a file with n events, and a checkpoint after each few.
func exported(t *testing.T, signer events.Key, n, few int) (lines []string) {
	t.Helper()
	var tree events.Tree
	for i := 1; i <= n; i++ {
		e := sample(eventtype.Queued, i)
		e.Metrics = map[string]any{"a": 1e21, "b": 1.5e-7, "c": 12345678901234567890.0, "d": 0.1 + 0.2, "e": -3, "f": 0.000001, "g": 123456.75, "ü": 100, "h": 1e-7, "i": 5e20}
		e.Job.Message = "\u2028<é>\x7f\x01\U0001F600\""
		payload, err := json.Marshal(e)
		if err == nil {
			tree, err = tree.Add(payload)
		}
		var signed []byte
		if err == nil {
			signed, err = events.Sign(t.Context(), payload, signer)
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines = append(lines, string(signed)); i%few == 0 {
			text, err := events.Checkpoint{Origin: events.Origin("default", "e1"), Tree: tree}.Sign(signer)
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(events.CheckpointLine{Checkpoint: text})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
	}
	return lines
}
