package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
)

const (
	// curveRuns is the number of runs of a measurement without a payload.
	curveRuns = 3000
	// payloadRuns is that of one with a payload.
	payloadRuns = 400
	// syncTime is the duration of a loop of fsyncs.
	syncTime = 2 * time.Second
	// syncBytes is about what a commit appends to the log.
	syncBytes = 36 << 10
	// syncGoal is the part of the disk's fsyncs that the stack should reach.
	syncGoal = 0.5
	// curvesFile is the document, from the root of the repository.
	curvesFile = growthFolder + "/CURVES.md"
	// profiled is the number of functions of the profile.
	profiled = 25
)

// point is one measurement of a curve.
type point struct {
	at                             string
	x                              float64
	rate, cpu, commits, runs1, p50 float64
}

// curves are what the document contains.
type curves struct {
	cores, payloads, living []point
	syncs                   [2]float64 // before and after
	profile                 string
}

// measureCurves measures the throughput of runs whose machines are goroutines against cores,
// payloads and waiting runs, beside the fsyncs that the disk allows, and writes the document.
func measureCurves(ctx context.Context, t *table) error {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	c := &curves{}
	if c.syncs[0], err = syncRate(folder); err != nil {
		return err
	}
	if err := c.measure(ctx); err != nil {
		return err
	}
	if c.profile, err = profileOf(ctx, folder); err != nil {
		return err
	}
	if c.syncs[1], err = syncRate(folder); err != nil {
		return err
	}
	c.add(t)
	if quick() {
		return nil
	}
	return os.WriteFile(curvesFile, []byte(c.document()), 0o644) //nolint:gosec // a public document
}

// measure measures the points of all curves.
func (c *curves) measure(ctx context.Context) error {
	add := func(to *[]point, at string, x float64, env []string, runs, waiting int, options ...string) error {
		p, err := curvePoint(ctx, env, few(runs), few(waiting), options...)
		p.at, p.x = at, x
		*to = append(*to, p)
		return err
	}
	for cores := 1; cores <= runtime.NumCPU() && cores <= 16; cores *= 2 {
		if err := add(&c.cores, fmt.Sprint(cores), float64(cores), []string{fmt.Sprintf("GOMAXPROCS=%d", cores)}, curveRuns, 0); err != nil {
			return err
		}
	}
	for _, kib := range []int{1, 16, 256, 1024} {
		if err := add(&c.payloads, fmt.Sprintf("%d KiB", kib), float64(kib), nil, payloadRuns, 0, "-work", fmt.Sprintf("upload:%d", kib<<10)); err != nil {
			return err
		}
	}
	for _, waiting := range []int{100, 1_000, 10_000} {
		if err := add(&c.living, fmt.Sprint(waiting), float64(waiting), nil, curveRuns, waiting); err != nil {
			return err
		}
	}
	return nil
}

// quick reports that the measurement only shows that it works, and writes no document.
func quick() bool { return os.Getenv("BENCH_CURVES") == "quick" }

// few returns n, or a tenth of it.
func few(n int) int {
	if quick() {
		return n / 10
	}
	return n
}

// syncRate returns the appends with an fsync that the disk of a folder allows, a second.
func syncRate(folder string) (float64, error) {
	file, err := os.Create(filepath.Join(folder, "syncs")) //nolint:gosec // a temporary folder
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	block, n, began := make([]byte, syncBytes), 0, time.Now()
	for time.Since(began) < syncTime {
		if _, err := file.WriteAt(block, int64(n%400)*syncBytes); err != nil { // a log is written again from its start
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// curvePoint starts a stack in an environment, and measures runs while others wait.
func curvePoint(ctx context.Context, env []string, runs, waiting int, options ...string) (p point, err error) {
	for _, each := range env {
		name, value, _ := strings.Cut(each, "=")
		if err := os.Setenv(name, value); err != nil {
			return p, err
		}
	}
	defer func() {
		for _, each := range env {
			name, _, _ := strings.Cut(each, "=")
			_ = os.Unsetenv(name)
		}
	}()
	c, at, err := startStack(append([]string{"-runner", "goroutine"}, options...)...)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	if err := park(ctx, at, waiting); err != nil {
		return p, err
	}
	if _, err := startMany(ctx, runs/10+inFlight, inFlight, exports(at.URL)); err != nil {
		return p, err
	}
	if _, err := c.written(); err != nil {
		return p, err
	}
	before, procErr := usageOf(c.command.Process.Pid)
	began := time.Now()
	timings, err := startMany(ctx, runs, inFlight, exports(at.URL))
	took := time.Since(began).Seconds()
	if err != nil {
		return p, err
	}
	written, err := c.written()
	if err != nil {
		return p, err
	}
	if after, err := usageOf(c.command.Process.Pid); err == nil && procErr == nil {
		p.cpu = millis(after.cpu-before.cpu) / float64(runs)
	}
	var ends []time.Duration
	for _, each := range timings {
		ends = append(ends, each.end)
	}
	p.rate, p.commits, p.p50 = float64(runs)/took, float64(written[1])/took, millis(percentile(ends, 0.5))
	p.runs1 = float64(written[1]) / float64(runs)
	return p, nil
}

// park submits runs to a pool with one slot, whose holder never ends.
func park(ctx context.Context, at stack.Addresses, waiting int) error {
	if waiting == 0 {
		return nil
	}
	token, err := stack.ReadToken(at.TokenFile)
	if err != nil {
		return err
	}
	if err := requestAs(ctx, token, http.MethodPut, at.URL+"/v1/pools/parked", `{"limit": 1, "queueLimit": 0}`, &struct{}{}); err != nil {
		return err
	}
	failed := make([]error, waiting+1)
	each(waiting+1, inFlight, func(i int) {
		failed[i] = requestAs(ctx, token, http.MethodPost, at.URL+"/v1/runs", `{"image": "registry.example/report:1", "pool": "parked"}`, &struct{}{})
	})
	return errors.Join(failed...)
}

// profileOf returns the functions that used most CPU time of a stack under load.
func profileOf(ctx context.Context, folder string) (string, error) {
	name := filepath.Join(folder, "profile")
	if _, err := curvePoint(ctx, []string{"BENCH_PROFILE=" + name}, few(curveRuns), 0); err != nil {
		return "", err
	}
	top := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", profiled), name+".goroutine") //nolint:gosec // our own file
	top.Stderr = os.Stderr
	text, err := top.Output()
	return string(text), err
}

func (c *curves) add(t *table) {
	for _, curve := range []struct {
		name   string
		points []point
	}{{"cores", c.cores}, {"output", c.payloads}, {"waiting runs", c.living}} {
		for _, p := range curve.points {
			t.add("runs against "+curve.name, p.at, "%.0f/s, CPU %.2f ms, %.0f commits/s", p.rate, p.cpu, p.commits)
		}
	}
	t.add("disk", "appends with fsync", "%.0f/s before, %.0f/s after", c.syncs[0], c.syncs[1])
}

func (c *curves) document() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Curves of the local engine

For people who change Sortie. This document is written by `+"`go run ./local/proof/bench -only curves`"+` on %d cores (%s/%s, %s).
Runs are exports whose machines are goroutines, %d at once; clients share the cores. Compare figures only within the document.

The disk allows %.0f appends of %d KiB with an fsync a second before the measurements, and %.0f after them (*disk*). The last
column compares the commits of the stack with their mean; goal %.1f. Several changes share a commit.
`, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), inFlight, c.syncs[0], syncBytes>>10, c.syncs[1], syncGoal)
	disk := (c.syncs[0] + c.syncs[1]) / 2
	for _, curve := range []struct {
		title, column string
		points        []point
	}{{"Cores of the server (GOMAXPROCS)", "cores", c.cores}, {"Size of the output", "output", c.payloads}, {"Runs that wait for a slot of another pool", "waiting", c.living}} {
		fmt.Fprintf(&b, "\n## %s\n\n| %s | runs/s | CPU of a run, ms | POST to the end, p50, ms | commits of a run | commits/s | part of the disk |\n|---:|---:|---:|---:|---:|---:|---:|\n", curve.title, curve.column)
		for _, p := range curve.points {
			fmt.Fprintf(&b, "| %s | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f |\n", p.at, p.rate, p.cpu, p.p50, p.runs1, p.commits, p.commits/disk)
		}
		first, last := curve.points[0], curve.points[len(curve.points)-1]
		if last.x > first.x {
			fmt.Fprintf(&b, "\nThe CPU of a run grows with the exponent %.2f, its throughput with %.2f.\n", exponent(first.x, last.x, first.cpu, last.cpu), exponent(first.x, last.x, first.rate, last.rate))
		}
	}
	fmt.Fprintf(&b, "\n## Profile\n\nThe server under full load, `go tool pprof -top`:\n\n```text\n%s```\n", c.profile)
	return b.String()
}

// exponent returns b of the power law through two points.
func exponent(x1, x2, y1, y2 float64) float64 {
	return math.Log(y2/y1) / math.Log(x2/x1)
}
