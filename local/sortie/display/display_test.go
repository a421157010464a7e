package display_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

// golden compares the text with testdata/name. It spells control characters out.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.NewReplacer("\x1b", "<ESC>", "\r", "<CR>").Replace(got)
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

var begin = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// retried returns the events of a run that is queued, loses its first worker and succeeds.
func retried() []contract.TaskEvent {
	e := func(ms int, from, state, kind string, attempt int, message string, f *contract.Fault) contract.TaskEvent {
		return contract.TaskEvent{
			Type: kind, OccurredAt: begin.Add(time.Duration(ms) * time.Millisecond),
			From: from, State: state, Attempt: attempt, Message: message, Fault: f,
		}
	}
	lost := &contract.Fault{Code: "WORKER_LOST", Message: "the machine ended\x1b[2J with 137"}
	events := []contract.TaskEvent{
		e(0, "", "Pending", "job.accepted", 1, "", nil),
		e(5, "Pending", "Pending", "job.queued", 1, "waits for a slot of pool default", nil),
		e(1005, "Pending", "ContainerCreating", "job.admitted", 1, "", nil),
		e(1010, "ContainerCreating", "ContainerCreating", "job.machine_created", 1, "148e1", nil),
		e(1200, "ContainerCreating", "Running", "job.started", 1, "", nil),
		e(61200, "Running", "Terminating", "job.attempt_ended", 1, "", lost),
		e(61300, "Terminating", "Retrying", "job.retry_scheduled", 1, "in 2s", lost),
		e(63300, "Retrying", "Pending", "job.retry_due", 2, "", nil),
		e(63301, "Pending", "ContainerCreating", "job.admitted", 2, "", nil),
		e(63500, "ContainerCreating", "Running", "job.started", 2, "", nil),
		e(65500, "Running", "Terminating", "job.attempt_ended", 2, "", nil),
		e(65700, "Terminating", "Completed", "job.completed", 2, "", nil),
		e(99999, "Completed", "Completed", "job.output_expiring", 2, "downloaded", nil),
	}
	for i := range events {
		events[i].Seq = i + 1
	}
	return events
}

// follow displays the run in the steps in which a client receives it.
func follow(p *display.Progress, c *clock.Virtual) {
	percent, position := 40, 3
	events := retried()
	p.Update(contract.Status{Status: "processing", State: "Pending", QueuePosition: &position}, events[:2])
	c.Advance(time.Second)
	p.Update(contract.Status{Status: "processing", State: "Running", Progress: &contract.Progress{Percent: &percent, Message: "entity\x07 29 of 72"}}, events[2:5])
	p.Retrying(errors.New("cannot reach http://127.0.0.1:8080: connection refused"))
	p.Retrying(errors.New("cannot reach http://127.0.0.1:8080: connection refused"))
	p.Update(contract.Status{Status: "processing", State: "Running"}, events[5:10])
	p.Update(contract.Status{Status: "success", State: "Completed"}, events[10:])
	p.Downloading(500_000, 1_748_234)
}

func TestProgressWithoutTerminalIsPlainLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := clock.NewVirtual(begin)
	p := display.NewProgress(display.NewScreen(&out, nil), c)
	follow(p, c)
	p.Close()
	golden(t, "plain.txt", out.String())
}

// TestProgressIsOneLineOnATerminal runs in a synctest bubble, so that the drawing goroutine
// acts only when the clock advances.
func TestProgressIsOneLineOnATerminal(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{80, 30} {
		t.Run(fmt.Sprintf("%d columns", columns), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				c := clock.NewVirtual(begin)
				screen := display.NewScreen(&out, func() int { return columns })
				p := display.NewProgress(screen, c)
				synctest.Wait()
				events := retried()
				p.Update(contract.Status{Status: "processing"}, events[:1])
				for range 3 {
					c.Advance(100 * time.Millisecond)
					synctest.Wait()
				}
				slog.New(slog.NewTextHandler(screen, &slog.HandlerOptions{ReplaceAttr: withoutTime})).Info("log line")
				p.Update(contract.Status{Status: "success"}, events[11:12])
				p.Downloading(1_000_000, 2_000_000)
				c.Advance(100 * time.Millisecond)
				synctest.Wait()
				p.Close()
				p.Close()
				golden(t, fmt.Sprintf("terminal-%d.txt", columns), out.String())
			})
		})
	}
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func TestScreenKeepsLinesWhole(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	screen := display.NewScreen(&out, nil)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				screen.Line("a line")
				screen.Draw("not drawn")
			}
		})
	}
	writers.Wait()
	if got, want := out.String(), strings.Repeat("a line\n", 800); got != want {
		t.Errorf("got %d bytes with mixed lines, want %d bytes of whole lines", len(got), len(want))
	}
	out.Reset()
	for _, part := range []string{"begin", "ning and end\nnext", " line\n"} {
		if _, err := screen.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "beginning and end\nnext line\n" {
		t.Errorf("got %q, want two whole lines", got)
	}
}

func TestPhasesHaveTheDurationsOfTheEvents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := display.WritePhases(&out, retried()); err != nil {
		t.Fatal(err)
	}
	golden(t, "phases.txt", out.String())
}

func TestTableAlignsAndCleansCells(t *testing.T) {
	t.Parallel()
	table := display.NewTable("TASK", "STATE", "")
	table.Row("export_mods_1", "Running", "x")
	table.Row("日本", "a\x1b[31mb\nc", "")
	var out bytes.Buffer
	if _, err := table.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", out.String())
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                         "0 ms",
		1499 * time.Microsecond:   "1 ms",
		999 * time.Millisecond:    "999 ms",
		999900 * time.Microsecond: "1.0 s",
		2934 * time.Millisecond:   "2.9 s",
		59949 * time.Millisecond:  "59.9 s",
		59990 * time.Millisecond:  "1 min 0 s",
		725 * time.Second:         "12 min 5 s",
		200 * time.Minute:         "3 h 20 min",
		-time.Second:              "-1.0 s",
	} {
		if got := display.Duration(d); got != want {
			t.Errorf("Duration(%v): got %q, want %q", int64(d), got, want)
		}
	}
}

func TestBytesAndCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64][2]string{
		0:             {"0 B", "0"},
		999:           {"999 B", "999"},
		1000:          {"1.0 kB", "1,000"},
		1748234:       {"1.7 MB", "1,748,234"},
		999_999_999:   {"1.0 GB", "999,999,999"},
		5_000_000_000: {"5.0 GB", "5,000,000,000"},
	} {
		if got := [2]string{display.Bytes(n), display.Count(n)}; got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	if got := display.Count(-1234); got != "-1,234" {
		t.Errorf("Count(-1234): got %q, want -1,234", got)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ünïcode":    "plain ünïcode",
		"\x1b]0;title\x07": " ]0;title ",
		"a\nb\tc\r":        "a b c ",
		"\u202Eright":      " right",
		"bad \xff byte":    "bad \uFFFD byte",
	} {
		if got := display.Clean(text); got != want {
			t.Errorf("Clean(%q): got %q, want %q", text, got, want)
		}
	}
}
