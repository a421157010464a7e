package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fanChildren is the number of items of the measured run, fanKills how often the stack is killed
// while their children run.
const (
	fanChildren = 10_000
	fanKills    = 5
)

// fanGoal is the target time until all children are accepted and listed. It is printed with the
// figure and not asserted.
const fanGoal = 10 * time.Second

// fanWork is how long the program of a child works, so that a kill interrupts many of them.
const fanWork = 300 * time.Millisecond

// fanLimit is how long the children may take to end.
const fanLimit = 20 * time.Minute

// fanStack is a stack that is killed and started again with the same data.
type fanStack struct {
	folder string
	part   *child
	stack.Addresses
	token string
}

// start starts the stack and reads the token of its folder.
func (f *fanStack) start() (err error) {
	if f.part, f.Addresses, err = startStack("-runner", "function", "-takes", fanWork.String(), "-dir", f.folder); err != nil {
		return err
	}
	f.token, err = stack.ReadToken(f.TokenFile)
	return err
}

// kill sends SIGKILL to the stack, and starts it again. Its machines end with it.
func (f *fanStack) kill() error {
	if err := f.part.command.Process.Kill(); err != nil {
		return err
	}
	_ = f.part.command.Wait() // it was killed
	return f.start()
}

func (f *fanStack) call(ctx context.Context, method, path, body string, into any) error {
	return requestAs(ctx, f.token, method, f.URL+path, body, into)
}

// measureFan runs a job with 10,000 items. It measures the time until its children are accepted
// and listed, kills the stack while they run, and checks that each child has ended once.
func measureFan(ctx context.Context, t *table) (err error) {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	f := &fanStack{folder: folder}
	if err := f.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.part.end()) }()
	job := fmt.Sprintf(`{"id":"fan","image":%q,"completion":"callback","items":["a"],"maxParallel":100,"retryConfig":{"maxRetries":%d}}`, service.DefaultImage, fanKills+1)
	if err := f.call(ctx, http.MethodPut, "/v1/jobs/fan", job, &struct{}{}); err != nil {
		return err
	}
	const name = "10,000 children of a run"
	id, err := submitFan(ctx, t, name, f)
	if err != nil {
		return err
	}
	startedAt := time.Now()
	if err := runFan(ctx, f, id); err != nil {
		return err
	}
	t.add(name, fmt.Sprintf("ended per second, with %d kills", fanKills), "%.0f", fanChildren/time.Since(startedAt).Seconds())
	return countFan(ctx, t, name, f, id)
}

// submitFan starts the run and lists its children. It returns the id of the run.
func submitFan(ctx context.Context, t *table, name string, f *fanStack) (string, error) {
	items := make([]string, fanChildren)
	for i := range items {
		items[i] = fmt.Sprintf("s3://scans/in/%05d.tif", i)
	}
	body, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return "", err
	}
	startedAt := time.Now()
	var accepted contract.RunAccepted
	if err := f.call(ctx, http.MethodPost, "/v1/jobs/fan/runs", string(body), &accepted); err != nil {
		return "", err
	}
	took := time.Since(startedAt)
	var listed []contract.RunChild
	for time.Since(startedAt) < fanLimit && len(listed) < fanChildren {
		if listed, err = f.children(ctx, accepted.RunID); err != nil {
			return "", err
		}
	}
	all := time.Since(startedAt)
	for i, c := range listed {
		if c.Index != i || c.Item != items[i] {
			return "", fmt.Errorf("got child %d with item %q at %d, want %q", c.Index, c.Item, i, items[i])
		}
	}
	t.add(name, "accepted / listed after (goal: "+fanGoal.String()+")", "%.2f / %.2f s", took.Seconds(), all.Seconds())
	return accepted.RunID, nil
}

// children lists all children of a run.
func (f *fanStack) children(ctx context.Context, id string) (all []contract.RunChild, err error) {
	for cursor := ""; ; {
		var page contract.RunChildren
		if err := f.call(ctx, http.MethodGet, "/v1/runs/"+id+"/children?limit=1000&cursor="+cursor, "", &page); err != nil {
			return nil, err
		}
		all = append(all, page.Children...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// runFan follows the run to its end and kills the stack meanwhile, at even numbers of children that
// have ended.
func runFan(ctx context.Context, f *fanStack, id string) error {
	kills := 0
	for until := time.Now().Add(fanLimit); time.Now().Before(until); pause(50 * time.Millisecond) {
		var run contract.Task
		if err := f.call(ctx, http.MethodGet, "/v1/runs/"+id, "", &run); err != nil {
			return err
		}
		if !run.EndedAt.IsZero() {
			if run.State != "Completed" || kills < fanKills {
				return fmt.Errorf("got %s with %+v after %d kills, want Completed after %d", run.State, run.Children, kills, fanKills)
			}
			return nil
		}
		if n := run.Children; n != nil && kills < fanKills && n.Succeeded+n.Failed > (kills+1)*fanChildren/(fanKills+1) {
			if err := f.kill(); err != nil {
				return err
			}
			kills++
		}
	}
	return fmt.Errorf("the children of run %s have not ended after %s", id, fanLimit)
}

// countFan compares the children of the ended run, its results and the events of their ends.
func countFan(ctx context.Context, t *table, name string, f *fanStack, id string) error {
	children, err := f.children(ctx, id)
	if err != nil {
		return err
	}
	ends, err := f.ends(ctx)
	if err != nil {
		return err
	}
	lost, repeated, attempts := 0, 0, 0
	for _, c := range children {
		if c.State != "succeeded" || ends[c.RunID] == 0 {
			lost++
		}
		if ends[c.RunID] > 1 {
			repeated++
		}
		attempts += c.Attempt
	}
	lost += fanChildren - len(children)
	t.add(name, fmt.Sprintf("lost, ended twice, attempts, with %d kills", fanKills), "%d, %d, %d", lost, repeated, attempts)
	if lost > 0 || repeated > 0 {
		return fmt.Errorf("%d children are lost and %d have ended twice, want none", lost, repeated)
	}
	return nil
}

// fanEnds are the types of the events of ended runs.
var fanEnds = []string{"job.completed", "job.failed", "job.cancelled"}

// ends returns how many events of an end each run has.
func (f *fanStack) ends(ctx context.Context) (map[string]int, error) {
	found, seen := map[string]int{}, map[string]bool{}
	for after := "earliest"; ; {
		var page contract.EventPage
		if err := f.call(ctx, http.MethodGet, "/v1/events?limit=1000&types="+strings.Join(fanEnds, ",")+"&after="+after, "", &page); err != nil {
			return nil, err
		}
		for _, text := range page.Events {
			var e struct {
				EventID, EventType string
				Job                struct{ RunID string }
			}
			if err := json.Unmarshal(text, &e); err != nil {
				return nil, err
			}
			if slices.Contains(fanEnds, e.EventType) && !seen[e.EventID] {
				seen[e.EventID] = true
				found[e.Job.RunID]++
			}
		}
		if page.Next == after {
			return found, nil
		}
		after = page.Next
	}
}
