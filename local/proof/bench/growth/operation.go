package growth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// sample is what the operations of a size read.
type sample struct {
	// runs are some in the middle of all, and cursor is that of the page after them.
	runs   []string
	cursor string
	// jobs are some in the middle of all, jobCursor that of the page after them.
	jobs      []string
	jobCursor string
	// holder is the run that has the only slot.
	holder string
	n      int
}

const (
	// repeats is how often each operation is called, after one call that is not counted.
	repeats = 4
	// sampled is the number of runs and jobs of a sample.
	sampled = 2 * (repeats + 1)
	page    = 10
)

// sampleOf reads a sample of a store with n of an axis.
func (a Axis) sampleOf(ctx context.Context, h *home, n int) (*sample, error) {
	s := &sample{n: n}
	var list struct {
		Tasks []struct {
			TaskID string `json:"taskId"`
		}
		NextCursor string
	}
	if err := h.call(ctx, origin, http.MethodGet, "/v1/runs?limit=1", "", &list); err != nil {
		return nil, err
	}
	if len(list.Tasks) > 0 {
		middle, err := a.middleOf(ctx, h, n)
		if err != nil {
			return nil, err
		}
		path := fmt.Sprintf("/v1/runs?limit=%d&createdBefore=%s", sampled, url.QueryEscape(middle))
		if err := h.call(ctx, origin, http.MethodGet, path, "", &list); err != nil {
			return nil, err
		}
	}
	for _, each := range list.Tasks {
		s.runs = append(s.runs, each.TaskID)
	}
	s.cursor = list.NextCursor
	for _, one := range h.machines.waiting {
		s.holder = one.Owner.RunID
	}
	return s, s.readJobs(ctx, h)
}

// readJobs reads the first half of the jobs in pages.
func (s *sample) readJobs(ctx context.Context, h *home) error {
	var list struct {
		Jobs []struct {
			ID string `json:"id"`
		}
		NextCursor string
	}
	path := fmt.Sprintf("/v1/jobs?limit=%d", sampled)
	for read := 0; read <= s.n/2; read += sampled {
		from := path
		if list.NextCursor != "" {
			from += "&cursor=" + url.QueryEscape(list.NextCursor)
		}
		if err := h.call(ctx, origin, http.MethodGet, from, "", &list); err != nil {
			return err
		}
		if list.NextCursor == "" {
			break
		}
	}
	for _, each := range list.Jobs {
		s.jobs = append(s.jobs, each.ID)
	}
	s.jobCursor = list.NextCursor
	return nil
}

// get returns an operation that reads a path.
func get(name string, path func(s *sample, i int) string) operation {
	return operation{name: name, do: func(ctx context.Context, h *home, s *sample, i int) error {
		return h.call(ctx, origin, http.MethodGet, path(s, i), "", nil)
	}}
}

// The names of operations that other code selects.
const (
	byError       = "list of runs by an error that no run has"
	byState       = "list of runs in another state"
	byCommonState = "list of runs in the state of most"
)

// cached is the number of records that the store keeps in memory.
const cached = 1024

// onRuns returns the operations on runs. state is that of most of them.
func onRuns(state string) []operation {
	list := fmt.Sprintf("/v1/runs?limit=%d", page)
	return []operation{
		get("list of runs", func(*sample, int) string { return list }),
		get("list of runs, a page in the middle", func(s *sample, _ int) string { return list + "&cursor=" + url.QueryEscape(s.cursor) }),
		get(byCommonState, func(*sample, int) string { return list + "&state=" + state }),
		get(byState, func(*sample, int) string { return list + "&state=Failed" }),
		get(byError, func(*sample, int) string { return "/v1/runs?limit=1&error=none" }),
		{name: "status of a run", bound: cached, do: get("", func(s *sample, i int) string { return "/v1/runs/" + s.runs[i%len(s.runs)] }).do},
		{name: "explanation of a run", bound: limit.QueuePositions, do: get("", func(s *sample, i int) string { return "/v1/runs/" + s.runs[i%len(s.runs)] + "/explain" }).do},
		get("events of a run", func(s *sample, i int) string { return "/v1/tasks/" + s.runs[i%len(s.runs)] + "/events" }),
		{name: "submission of a run, with its start or queue", do: submitOne},
	}
}

// onJobs returns the operations on jobs.
func onJobs() []operation {
	list := fmt.Sprintf("/v1/jobs?limit=%d", page)
	path := func(s *sample, i int) string { return "/v1/jobs/" + s.jobs[i%len(s.jobs)] }
	return []operation{
		get("list of jobs", func(*sample, int) string { return list }),
		get("list of jobs, a page in the middle", func(s *sample, _ int) string { return list + "&cursor=" + url.QueryEscape(s.jobCursor) }),
		get("job", path),
		get("explanation of a job", func(s *sample, i int) string { return path(s, i) + "/explain" }),
		{name: "change of a job", do: func(ctx context.Context, h *home, s *sample, i int) error {
			body := fmt.Sprintf(`{"image": "registry.example/report:%d-%d", "command": ["report"], "schedule": "0 3 1 1 *"}`, s.n, i)
			if err := h.call(ctx, origin, http.MethodPut, path(s, i), body, nil); err != nil {
				return err
			}
			return h.settle(ctx)
		}},
		{name: "run of a job, with its start", do: func(ctx context.Context, h *home, s *sample, i int) error {
			if _, err := h.submit(ctx, origin, path(s, i)+"/runs", "{}"); err != nil {
				return err
			}
			return h.settle(ctx)
		}},
	}
}

func submitOne(ctx context.Context, h *home, _ *sample, _ int) error {
	if _, err := h.submit(ctx, origin, "/v1/runs", programBody); err != nil {
		return err
	}
	return h.settle(ctx)
}

func cancelQueued(ctx context.Context, h *home, s *sample, i int) error {
	if err := h.call(ctx, origin, http.MethodPost, "/v1/runs/"+s.runs[sampled-1-i]+"/cancel", "{}", nil); err != nil {
		return err
	}
	return h.settle(ctx)
}

// endOne ends the run that has the only slot. The next one gets it.
func endOne(ctx context.Context, h *home, s *sample, _ int) error {
	if err := h.finish(ctx, origin, s.holder); err != nil {
		return err
	}
	for range 100 {
		for _, one := range h.machines.waiting {
			s.holder = one.Owner.RunID
			return nil
		}
		h.clock.Advance(h.pause())
		if err := h.settle(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("no run has started after %s", s.holder)
}
