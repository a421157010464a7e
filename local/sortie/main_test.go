package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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
	sampleFile = sampleRoot + "-collection.mods.xml"
	image      = "registry.fly.io/arke-mods-export-worker:latest"
)

// TestMain runs sortie if the first argument of the test binary is a command, so that the
// machines of a test have a worker and a supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		if os.Args[1] == "gated-worker" {
			os.Exit(gatedWorker(os.Args[2]))
		}
		main()
		return
	}
	os.Exit(m.Run())
}

// gatedWorker is a worker that waits until the FIFO gate is opened for writing. It then reports
// a success without an output.
func gatedWorker(gate string) int {
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

// sortie is a running command.
type sortie struct {
	*exec.Cmd
	stdout, stderr *lines
	ended          chan error
}

// start starts a command. At the end of the test it sends SIGTERM, so that a stack stops its
// machines.
func start(t *testing.T, dir string, args ...string) *sortie {
	t.Helper()
	return startWith(t, dir, nil, args...)
}

// startWith is like start with additional environment variables.
func startWith(t *testing.T, dir string, env []string, args ...string) *sortie {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	s := &sortie{Cmd: exec.CommandContext(ctx, program, args...), stdout: newLines(), stderr: newLines(), ended: make(chan error, 1)}
	s.Cancel, s.WaitDelay = func() error { return s.Process.Signal(syscall.SIGTERM) }, 30*time.Second
	s.Dir, s.Stdout, s.Stderr = dir, s.stdout, s.stderr
	s.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir()}, env...)
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
			t.Logf("output of sortie %s:\n%s%s", strings.Join(args, " "), s.stdout, s.stderr)
		}
	})
	return s
}

// exit waits for the command and returns its exit code.
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

// dev starts a stack and returns its URL.
func dev(t *testing.T, dir string, args ...string) (*sortie, string) {
	t.Helper()
	s := start(t, dir, append([]string{"dev", "--json"}, args...)...)
	var at struct{ URL, S3, Machines, Source, Bucket, Data string }
	first := s.stdout.next(t, "{")
	if err := json.Unmarshal([]byte(first), &at); err != nil {
		t.Fatalf("first line: got %q: %v", first, err)
	}
	if at.URL == "" || at.S3 == "" || at.Machines == "" || at.Source == "" || at.Bucket == "" || !filepath.IsAbs(at.Data) {
		t.Errorf("got addresses %s, want all of them", first)
	}
	return s, at.URL
}

func TestDemoExportsTheSample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := start(t, dir, "demo")
	if code := demo.exit(t); code != 0 {
		t.Fatalf("got exit code %d, want 0", code)
	}
	content, err := os.ReadFile(filepath.Join(dir, "out", sampleFile))
	if err != nil || !bytes.Contains(content, []byte("<modsCollection")) {
		t.Errorf("got a file of %d bytes that is not a collection, error %v", len(content), err)
	}
	for _, want := range []string{"72 entities", "Running", "Completed", filepath.Join("out", sampleFile), "Try next"} {
		if !strings.Contains(demo.stdout.String(), want) {
			t.Errorf("got no %q in the summary", want)
		}
	}
	if strings.Contains(demo.stderr.String(), "\x1b") {
		t.Error("got escape sequences without a terminal")
	}
}

func TestDevServesExportsAndStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, url := dev(t, dir, "--addr", "127.0.0.1:0")
	export := start(t, dir, "export", "mods", "--pi", sampleRoot, "--recursive", "--url", url, "-o", "mine.xml")
	if code := export.exit(t); code != 0 {
		t.Fatalf("got exit code %d, want 0", code)
	}
	said := strings.Fields(export.stdout.String())
	if len(said) != 2 || !regexp.MustCompile(`^export_mods_\d+_[0-9a-f]{8}$`).MatchString(said[0]) || said[1] != "mine.xml" {
		t.Errorf("got %q on standard output", said)
	}
	second := start(t, dir, "dev", "--addr", "127.0.0.1:0")
	if code := second.exit(t); code != 1 || !strings.Contains(second.stderr.String(), "another sortie") {
		t.Errorf("second server on the folder: got exit code %d, want 1", code)
	}
	backup := start(t, dir, "backup", "copy.db")
	if code := backup.exit(t); code != 0 {
		t.Errorf("backup beside a running server: got exit code %d, want 0", code)
	}
	server.signal(t, os.Interrupt)
	if code := server.exit(t); code != 0 {
		t.Errorf("after Ctrl-C: got exit code %d, want 0", code)
	}
	for line := range strings.Lines(server.stderr.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("got the log line %q, want JSON", line)
		}
	}
	if status := start(t, dir, "status", said[0], "--url", url); status.exit(t) != 3 {
		t.Error("got a response of the stopped server")
	}
}

// TestDemoRunsBesideDev runs the demo in the folder of a running server.
func TestDemoRunsBesideDev(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dev(t, dir, "--addr", "127.0.0.1:0")
	if code := start(t, dir, "demo").exit(t); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
}

func TestDevThatCannotListenLeavesNoFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed below
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	failed := start(t, dir, "dev", "--addr", taken.Addr().String())
	if code := failed.exit(t); code != 1 || !strings.Contains(failed.stderr.String(), "--addr 127.0.0.1:0") {
		t.Errorf("got exit code %d, want 1 and a hint at another address", code)
	}
	if _, err := os.Stat(filepath.Join(dir, ".sortie")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got a data folder, error %v", err)
	}
}

// TestDevLogsForPeople checks the log lines of dev during an export and at Ctrl-C.
func TestDevLogsForPeople(t *testing.T) {
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
	// The path gate is relative to the folder in which dev starts.
	server := start(t, dir, "dev", "--addr", "127.0.0.1:0", "--image", fmt.Sprintf("%s='%s' gated-worker gate", image, program))
	_, url, _ := strings.Cut(server.stdout.next(t, "  API"), "http")
	url = "http" + url
	next := server.stdout.next(t, " export mods ")
	if want := "export mods --pi " + sampleRoot + " --recursive --url " + url; !strings.HasSuffix(next, want) {
		t.Errorf("got the next command %q, want %q", next, want)
	}
	export := start(t, dir, "export", "mods", "--pi", sampleRoot, "--url", url)
	task := export.stdout.next(t, "export_mods_")
	export.stderr.next(t, "Running")
	status := start(t, dir, "status", task, "--url", url)
	if code := status.exit(t); code != 0 {
		t.Errorf("status: got exit code %d, want 0", code)
	}
	server.signal(t, os.Interrupt)
	if code := server.exit(t); code != 0 {
		t.Errorf("after Ctrl-C: got exit code %d, want 0", code)
	}
	log := server.stderr.String()
	if want := "starts over at the next start  " + task + " #1"; !strings.Contains(log, want) {
		t.Errorf("got no %q in the log", want)
	}
	for line := range strings.Lines(log) {
		if len([]rune(line)) > 101 || strings.Contains(line, "request") {
			t.Errorf("got the log line %q, want at most 100 columns and no requests", line)
		}
	}
}

func TestExportSurvivesARestartOfTheServer(t *testing.T) {
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
			binding := fmt.Sprintf("%s='%s' gated-worker '%s'", image, program, gate)
			server, url := dev(t, dir, "--addr", "127.0.0.1:0", "--image", binding)
			export := start(t, dir, "export", "mods", "--pi", sampleRoot, "--url", url)
			export.stderr.next(t, "Running")
			server.signal(t, end)
			if code := server.exit(t); end == syscall.SIGTERM && code != 0 {
				t.Errorf("after SIGTERM: got exit code %d, want 0", code)
			}
			export.stderr.next(t, "retrying")
			_, again := dev(t, dir, "--addr", strings.TrimPrefix(url, "http://"), "--image", binding)
			if again != url {
				t.Fatalf("after the restart: got %s, want %s", again, url)
			}
			opened, err := os.OpenFile(gate, os.O_WRONLY, 0) // blocks until a worker opens it
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if err := opened.Close(); err != nil {
				t.Fatal(err)
			}
			if code := export.exit(t); code != 0 {
				t.Errorf("got exit code %d", code)
			}
			if !strings.Contains(export.stderr.String(), "no output") {
				t.Error("got no note about the missing output")
			}
		})
	}
}

func TestInterruptedExportNamesTheNextCommand(t *testing.T) {
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
	_, url := dev(t, dir, "--addr", "127.0.0.1:0", "--image", fmt.Sprintf("%s='%s' gated-worker '%s'", image, program, gate))
	export := start(t, dir, "export", "mods", "--pi", sampleRoot, "--url", url)
	task := export.stdout.next(t, "export_mods_")
	export.stderr.next(t, "Running")
	export.signal(t, os.Interrupt)
	if code := export.exit(t); code != 130 {
		t.Errorf("got exit code %d", code)
	}
	if said := export.stderr.String(); !strings.Contains(said, " status "+task+" --wait") {
		t.Errorf("got %q, want the command that continues", said)
	}
	waited := start(t, dir, "status", task, "--url", url, "--wait", "--timeout", "1s")
	if code := waited.exit(t); code != 5 {
		t.Errorf("after the timeout: got exit code %d, want 5", code)
	}
}

func TestInterruptedDemoLeavesNoPartialFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := start(t, dir, "demo")
	demo.stderr.next(t, "202 accepted")
	demo.signal(t, os.Interrupt)
	// The demo may have ended before the signal.
	if code := demo.exit(t); code != 130 && code != 0 {
		t.Errorf("got exit code %d", code)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != sampleFile {
			t.Errorf("got the file %s", e.Name())
		}
	}
	if again := start(t, dir, "demo"); again.exit(t) != 0 {
		t.Error("demo after an interrupted demo: got a failure")
	}
}
