//go:build unix

package runners

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/daemons"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// compare compares the exit of the command, the run and the program with the expected end.
func (s *system) compare(t *testing.T, want End, exit int, run contract.Task) {
	t.Helper()
	got := End{Exit: exit, State: run.State, Attempt: run.Attempt}
	var message string
	if run.Fault != nil {
		got.Code, message = run.Fault.Code, run.Fault.Message
	}
	if run.Machine != nil {
		got.Program = run.Machine.Exit
	}
	if !strings.Contains(message, want.Message) {
		t.Errorf("got message %q, want one with %q", message, want.Message)
	}
	want = End{Exit: want.Exit, State: want.State, Code: want.Code, Attempt: want.Attempt, Program: want.Program}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// compareLog compares the stored log of the last attempt, and the command's output, with the
// expected streams.
func (s *system) compareLog(t *testing.T, want End, run contract.Task, stdout, stderr string) {
	t.Helper()
	read := func(stream string) string {
		t.Helper()
		got := s.client(t).Call(http.MethodGet, fmt.Sprintf("/v1/tasks/%s/logs?attempt=%d&stream=%s", run.TaskID, run.Attempt, stream), "")
		if got.Status == http.StatusNotFound {
			return ""
		}
		return string(got.Body)
	}
	if want.Cut {
		wantCut(t, "log", read("stdout"))
		return
	}
	for stream, text := range map[string]string{"stdout": want.Stdout, "stderr": want.Stderr} {
		got := read(stream)
		if stream == "stderr" && want.Said != "" && strings.Contains(got, want.Said) {
			continue
		}
		if got != text {
			t.Errorf("got the log of %s %q, want %q", stream, got, text)
		}
	}
	if !strings.HasSuffix(stdout, want.Stdout) || !strings.Contains(stderr, want.Stderr) {
		t.Errorf("got %q and %q of the command, want %q and %q in them", stdout, stderr, want.Stdout, want.Stderr)
	}
}

// wantCut checks a log of large-log: its beginning, its end, and the mark for the missing
// bytes.
func wantCut(t *testing.T, what, text string) {
	t.Helper()
	begin, end := fmt.Sprintf("%099d\n", 1), fmt.Sprintf("%099d\nend\n", 12000)
	before, after, cut := strings.Cut(text, " bytes are cut out here]\n")
	if !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) || !cut || len(text) > limit.Log+1000 {
		t.Errorf("got %s of %d bytes, %q … %q, want its beginning, its end and a cut of at most %d", what, len(text), before[:min(len(before), 300)], after[max(0, len(after)-300):], limit.Log)
	}
}

// nothingLeft waits until the platform has no resource of the run, and no process has its mark.
func (s *system) nothingLeft(t *testing.T, task, mark string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	often := time.NewTicker(200 * time.Millisecond)
	defer often.Stop()
	for {
		left, err := s.Left(ctx, s.at, task)
		for _, pid := range daemons.Alive(mark) {
			left = append(left, fmt.Sprintf("daemon %d", pid))
		}
		if err == nil && len(left) == 0 {
			return
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			t.Fatalf("got %v (%v) left on the platform, want nothing", left, err)
		}
	}
}
