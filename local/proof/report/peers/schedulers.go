package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// scheduler is a system that runs programs.
type scheduler interface {
	name() string
	// start starts the server on the data of the folder, also after a kill, and waits until it
	// accepts work.
	start(ctx context.Context, folder string) error
	// submit returns when the system has acknowledged the program. The result is what wait takes.
	submit(ctx context.Context, w work, id string) (string, error)
	// wait returns when the system says that the program has ended well.
	wait(ctx context.Context, run string) error
	// server is the process that is killed. It is also the one whose memory counts.
	server() *process
	stop()
}

const (
	together, programs = 20, 400 // clients, and programs of the measurement of throughput
	alone              = 30      // programs one after another
	// atKill programs of atKillSleep seconds are acknowledged before the kill.
	atKill, atKillSleep = 40, "3"
	// patience is how long after the restart the system may need to end them.
	patience = 2 * time.Minute
)

// measured is a row of the table.
type measured struct {
	name                        string
	rate, p50, p99, idle, first float64
	unfinished, twice, left     int
	recovered                   float64
}

func measureSchedulers(ctx context.Context) (result, error) {
	var r result
	var rows []measured
	for _, s := range []scheduler{&sortie{}, &temporalPeer{}, &nomad{}, &riverQueue{}} {
		if len(os.Args) > 2 && !slices.Contains(os.Args[2:], s.name()) {
			continue
		}
		row, err := measureScheduler(ctx, s)
		if errors.Is(err, errLeftOut) {
			r.Notes = append(r.Notes, err.Error()+".")
			continue
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", s.name(), err)
		}
		fmt.Fprintf(os.Stderr, "%+v\n", row)
		rows = append(rows, row)
	}
	for _, row := range rows {
		r.Figures = append(r.Figures, row.figures()...)
	}
	r.Table = schedulerTable(rows)
	r.Notes = append(r.Notes,
		fmt.Sprintf("Each runs the same programs of the shell on this host. Throughput: %d programs, %d clients that wait for each. Alone: %d programs, one after another, from the submission until the client knows the end.", programs, together, alone),
		fmt.Sprintf("The kill: %d programs that sleep %s s are acknowledged, %d at once or as many as the system runs; when 5 have ended the server gets SIGKILL, and is started again after a second. *Unfinished* are those whose end the system does not know %s later; *twice* are programs that ran to their end again; *left* are programs still running at the end.", atKill, atKillSleep, together, patience),
		"All with their defaults and a store on disk. Temporal: the development server on a file, killed without its worker, which is a process of the user. Nomad: one agent as server and client with raw_exec; its tasks outlive it. River: on SQLite; its server is the process that works, which the kill takes with it, and a stuck job is rescued after an hour by default. Hatchet is left out: its server needs PostgreSQL and RabbitMQ's protocol, and its module is not served here.")
	return r, nil
}

func measureScheduler(ctx context.Context, s scheduler) (measured, error) {
	row := measured{name: s.name()}
	folder, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	began := time.Now()
	if err := s.start(ctx, folder); err != nil {
		return row, err
	}
	defer s.stop()
	if err := runOne(ctx, s, work{folder, "0"}, "first"); err != nil {
		return row, err
	}
	row.first = time.Since(began).Seconds()
	time.Sleep(10 * time.Second)
	row.idle = float64(s.server().resident()) / 1e6
	if row.p50, row.p99, err = latency(ctx, s, work{folder, "0"}); err != nil {
		return row, err
	}
	if row.rate, err = throughput(ctx, s, work{folder, "0"}); err != nil {
		return row, err
	}
	return row, killed(ctx, s, folder, &row)
}

func runOne(ctx context.Context, s scheduler, w work, id string) error {
	run, err := s.submit(ctx, w, id)
	if err != nil {
		return err
	}
	return s.wait(ctx, run)
}

func latency(ctx context.Context, s scheduler, w work) (p50, p99 float64, err error) {
	var took []float64
	for i := range alone {
		began := time.Now()
		if err := runOne(ctx, s, w, fmt.Sprintf("alone%d", i)); err != nil {
			return 0, 0, err
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}

func throughput(ctx context.Context, s scheduler, w work) (float64, error) {
	ids := make(chan string)
	var clients sync.WaitGroup
	failures := make(chan error, together)
	began := time.Now()
	for range together {
		clients.Go(func() {
			for id := range ids {
				if err := runOne(ctx, s, w, id); err != nil {
					failures <- err
					for range ids { // the others are not wanted any more
					}
				}
			}
		})
	}
	for i := range programs {
		ids <- fmt.Sprintf("many%d", i)
	}
	close(ids)
	clients.Wait()
	took := time.Since(began).Seconds()
	select {
	case err := <-failures:
		return 0, err
	default:
	}
	if got := len(w.noted("ended")); got < programs {
		return 0, fmt.Errorf("%d programs ended, want at least %d", got, programs)
	}
	return programs / took, nil
}

// killed kills the server while programs are running, and counts what that cost.
func killed(ctx context.Context, s scheduler, folder string, row *measured) error {
	w := work{filepath.Join(folder, "killed"), atKillSleep}
	if err := os.Mkdir(w.folder, 0o700); err != nil {
		return err
	}
	var runs []string
	for i := range atKill {
		run, err := s.submit(ctx, w, fmt.Sprintf("kill%d", i))
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	if err := until(ctx, "the first programs end", time.Minute, func() bool { return len(w.noted("ended")) >= 5 }); err != nil {
		return err
	}
	if err := s.server().kill(); err != nil {
		return err
	}
	time.Sleep(time.Second)
	if err := s.start(ctx, folder); err != nil {
		return fmt.Errorf("after the kill: %w", err)
	}
	restarted := time.Now()
	for _, run := range runs {
		// One that does not end leaves the others two seconds each to say that they have.
		waiting, cancel := context.WithTimeout(ctx, max(2*time.Second, patience-time.Since(restarted)))
		err := s.wait(waiting, run)
		cancel()
		if err != nil {
			row.unfinished++
			continue
		}
		row.recovered = time.Since(restarted).Seconds()
	}
	time.Sleep(5 * time.Second)
	for _, n := range w.noted("ended") {
		row.twice += n - 1
	}
	row.left = w.left()
	return nil
}

func (m measured) figures() []figure {
	of := func(name string, value float64, unit, better string, noise float64) figure {
		return figure{m.name + ": " + name, value, unit, better, noise}
	}
	return []figure{
		of("programs a second", m.rate, "1/s", "more", 0.25), of("one program, p50", m.p50, "ms", "less", 0.25), of("idle memory", m.idle, "MB", "less", 0.1),
		of("from nothing to the first end", m.first, "s", "less", 0.25), of("unfinished after the kill", float64(m.unfinished), "", "less", 0),
		of("ran twice after the kill", float64(m.twice), "", "less", 0), of("left running after the kill", float64(m.left), "", "less", 0),
	}
}

func schedulerTable(rows []measured) string {
	var b strings.Builder
	b.WriteString("| | programs/s | one, p50 / p99 ms | idle MB | first run s | after `kill -9`: unfinished | twice | left | all ended after s |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, m := range rows {
		recovered := fmt.Sprintf("%.1f", m.recovered)
		if m.unfinished > 0 {
			recovered = "-"
		}
		fmt.Fprintf(&b, "| %s %s | %.0f | %.0f / %.0f | %.0f | %.1f | %d | %d | %d | %s |\n", m.name, version(m.name), m.rate, m.p50, m.p99, m.idle, m.first, m.unfinished, m.twice, m.left, recovered)
	}
	return b.String()
}
