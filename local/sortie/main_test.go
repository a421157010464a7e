package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	sampleRoot = "01K9XVBAQZF9EHDRXGBEADTZYY"
	sampleFile = sampleRoot + "-collection.xml"
	image      = "registry.fly.io/arke-mods-export-worker:latest"
)

// TestMain lets the test's own program be Sortie: run with a command as its
// first argument, it is. So its machines find a worker and a supervisor too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		if os.Args[1] == "worker-behind-a-gate" {
			os.Exit(workBehindGate(os.Args[2]))
		}
		main()
		return
	}
	os.Exit(m.Run())
}

// workBehindGate is a worker of somebody's own: it does nothing, once somebody
// opens the gate, a FIFO, for writing, and calls back.
func workBehindGate(gate string) int {
	if _, err := os.ReadFile(gate); err != nil {
		return 2
	}
	body := fmt.Sprintf(`{"task_id": %q, "status": "success"}`, os.Getenv("TASK_ID"))
	resp, err := http.Post(os.Getenv("CALLBACK_URL"), "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}

// sortie is a command that runs in a folder.
type sortie struct {
	*exec.Cmd
	stdout, stderr *lines
	ended          chan error
}

// start begins a command. It is asked to end when the test ends before it, so
// that a stack takes its machines along.
func start(t *testing.T, dir string, args ...string) *sortie {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	s := &sortie{Cmd: exec.CommandContext(ctx, program, args...), stdout: newLines(), stderr: newLines(), ended: make(chan error, 1)}
	s.Cancel, s.WaitDelay = func() error { return s.Process.Signal(syscall.SIGTERM) }, 30*time.Second
	s.Dir, s.Stdout, s.Stderr = dir, s.stdout, s.stderr
	s.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir()}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		s.ended <- s.Wait()
		s.stdout.close()
		s.stderr.close()
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() {
			t.Logf("sortie %s said:\n%s%s", strings.Join(args, " "), s.stdout, s.stderr)
		}
	})
	return s
}

// exit waits for the command's end and gives its exit code.
func (s *sortie) exit(t *testing.T) int {
	t.Helper()
	err := <-s.ended
	s.ended <- err
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func (s *sortie) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// dev starts a stack and gives its URL.
func dev(t *testing.T, dir string, args ...string) (*sortie, string) {
	t.Helper()
	s := start(t, dir, append([]string{"dev", "--json"}, args...)...)
	var at struct{ URL, S3, Machines, Source, Bucket, Data string }
	first := s.stdout.next(t, "{")
	if err := json.Unmarshal([]byte(first), &at); err != nil {
		t.Fatalf("the first line is %q: %v", first, err)
	}
	if at.URL == "" || at.S3 == "" || at.Machines == "" || at.Source == "" || at.Bucket == "" || !filepath.IsAbs(at.Data) {
		t.Errorf("an address is missing: %s", first)
	}
	return s, at.URL
}

func TestDemoLeadsToTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := start(t, dir, "demo")
	if code := demo.exit(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	content, err := os.ReadFile(filepath.Join(dir, "out", sampleFile))
	if err != nil || !bytes.Contains(content, []byte("<modsCollection")) {
		t.Errorf("the file has %d bytes and is no collection, error %v", len(content), err)
	}
	for _, want := range []string{"72 entities", "Running", "Completed", filepath.Join("out", sampleFile), "Try next"} {
		if !strings.Contains(demo.stdout.String(), want) {
			t.Errorf("the summary does not say %q", want)
		}
	}
	if strings.Contains(demo.stderr.String(), "\x1b") {
		t.Error("something was drawn, and there is no terminal")
	}
}

func TestDevServesExportsAndStopsInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, url := dev(t, dir, "--addr", "127.0.0.1:0")
	export := start(t, dir, "export", "mods", "--pi", sampleRoot, "--recursive", "--url", url, "-o", "mine.xml")
	if code := export.exit(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	said := strings.Fields(export.stdout.String())
	if len(said) != 2 || !regexp.MustCompile(`^export_mods_\d+_[0-9a-f]{8}$`).MatchString(said[0]) || said[1] != "mine.xml" {
		t.Errorf("standard output has %q", said)
	}
	second := start(t, dir, "dev", "--addr", "127.0.0.1:0")
	if code := second.exit(t); code != 1 || !strings.Contains(second.stderr.String(), "another sortie") {
		t.Errorf("a second server on the folder ended with %d", code)
	}
	backup := start(t, dir, "backup", "copy.db")
	if code := backup.exit(t); code != 0 {
		t.Errorf("the backup beside a running server ended with %d", code)
	}
	server.signal(t, os.Interrupt)
	if code := server.exit(t); code != 0 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
	for line := range strings.Lines(server.stderr.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has the line %q", line)
		}
	}
	if status := start(t, dir, "status", said[0], "--url", url); status.exit(t) != 3 {
		t.Error("the server still answers")
	}
}

func TestWaitingOutlastsARestartOfTheServer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]os.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			gate := filepath.Join(dir, "gate")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			mine := fmt.Sprintf("%s='%s' worker-behind-a-gate '%s'", image, program, gate)
			server, url := dev(t, dir, "--addr", "127.0.0.1:0", "--image", mine)
			export := start(t, dir, "export", "mods", "--pi", sampleRoot, "--url", url)
			export.stderr.next(t, "Running")
			server.signal(t, end)
			if code := server.exit(t); end == syscall.SIGTERM && code != 0 {
				t.Errorf("exit code %d after SIGTERM", code)
			}
			export.stderr.next(t, "trying again")
			_, again := dev(t, dir, "--addr", strings.TrimPrefix(url, "http://"), "--image", mine)
			if again != url {
				t.Fatalf("it came back at %s instead of %s", again, url)
			}
			opened, err := os.OpenFile(gate, os.O_WRONLY, 0) // waits for a worker
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if err := opened.Close(); err != nil {
				t.Fatal(err)
			}
			if code := export.exit(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(export.stderr.String(), "no output") {
				t.Error("it does not say that the worker left no output")
			}
		})
	}
}

func TestInterruptedWaitingTellsHowToGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, url := dev(t, dir, "--addr", "127.0.0.1:0", "--image", fmt.Sprintf("%s='%s' worker-behind-a-gate '%s'", image, program, gate))
	export := start(t, dir, "export", "mods", "--pi", sampleRoot, "--url", url)
	task := export.stdout.next(t, "export_mods_")
	export.stderr.next(t, "Running")
	export.signal(t, os.Interrupt)
	if code := export.exit(t); code != 130 {
		t.Errorf("exit code %d", code)
	}
	if said := export.stderr.String(); !strings.Contains(said, "sortie status "+task+" --wait") {
		t.Error("it does not say how to go on")
	}
	waited := start(t, dir, "status", task, "--url", url, "--wait", "--timeout", "1s")
	if code := waited.exit(t); code != 5 {
		t.Errorf("exit code %d after the timeout", code)
	}
}

func TestInterruptedDemoLeavesNothingHalf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := start(t, dir, "demo")
	demo.stderr.next(t, "202 accepted")
	demo.signal(t, os.Interrupt)
	// It may have been quicker than the signal.
	if code := demo.exit(t); code != 130 && code != 0 {
		t.Errorf("exit code %d", code)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != sampleFile {
			t.Errorf("%s is left behind", e.Name())
		}
	}
	if again := start(t, dir, "demo"); again.exit(t) != 0 {
		t.Error("it does not work after that")
	}
}
