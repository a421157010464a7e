package job

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Loader returns a stored job; nil for an unknown one.
type Loader func(id string) (*Job, error)

// errLarge ends the walk of a graph that is too large.
var errLarge = errors.New("too many jobs in the graph")

// CheckGraph checks the jobs that a definition comes after: they exist, none of them comes after
// the job, and the graph has at most MaxGraph jobs. unknown are the problems of jobs that do not
// exist. It reads at most MaxGraph jobs.
func (d Definition) CheckGraph(load Loader) (found, unknown []Problem, err error) {
	if len(d.After) == 0 {
		return nil, nil, nil
	}
	p := &problems{}
	w := graphWalk{load: load, jobs: map[string]*Job{}}
	stored, err := load(d.ID)
	if err != nil {
		return nil, nil, err
	}
	changed := Job{ID: d.ID, Definition: d}
	if stored != nil {
		changed.Followers = stored.Followers
	}
	w.jobs[d.ID] = &changed
	for i, a := range d.After {
		field := join("after", strconv.Itoa(i))
		upstream, err := w.job(a.Job)
		if err == nil && upstream == nil {
			unknown = append(unknown, Problem{Field: field, Problem: fmt.Sprintf("unknown job %q, want a stored job", a.Job), Unprocessable: true})
			continue
		}
		var circle []string
		if err == nil {
			circle, err = w.path(a.Job, d.ID, map[string]bool{})
		}
		if err != nil {
			found, err = large(p, err)
			return found, unknown, err
		}
		if circle != nil {
			p.addConflict(field, "the jobs come after each other in a circle: %s; remove one of these dependencies", strings.Join(append(circle, d.ID), " -> "))
		}
	}
	if err := w.all(d.ID); err != nil && len(p.found) == 0 {
		found, err = large(p, err)
		return found, unknown, err
	}
	return p.sorted(), unknown, nil
}

// large returns the problem of a graph that is too large, or another error.
func large(p *problems, err error) ([]Problem, error) {
	if !errors.Is(err, errLarge) {
		return nil, err
	}
	p.addConflict("after", "the graph of the job has more than %d jobs, want at most %d", MaxGraph, MaxGraph)
	return p.sorted(), nil
}

// Graph returns the jobs of the graph of a job, each after those that it comes after, and
// otherwise by id. It returns only the job if it has no dependencies.
func (j Job) Graph(load Loader) ([]Job, error) {
	w := graphWalk{load: load, jobs: map[string]*Job{j.ID: &j}}
	if err := w.all(j.ID); err != nil && !errors.Is(err, errLarge) {
		return nil, err
	}
	return w.ordered(), nil
}

// graphWalk reads the jobs of a graph, each once.
type graphWalk struct {
	load Loader
	jobs map[string]*Job
}

func (w *graphWalk) job(id string) (*Job, error) {
	if j, known := w.jobs[id]; known {
		return j, nil
	}
	if len(w.jobs) >= MaxGraph {
		return nil, errLarge
	}
	j, err := w.load(id)
	if err != nil {
		return nil, fmt.Errorf("cannot read job %s: %w", id, err)
	}
	w.jobs[id] = j
	return j, nil
}

// path returns the jobs from target to id, each of which comes after the one before it; nil if id
// does not come after target.
func (w *graphWalk) path(id, target string, seen map[string]bool) ([]string, error) {
	if id == target {
		return []string{id}, nil
	}
	j, err := w.job(id)
	if err != nil || j == nil || seen[id] {
		return nil, err
	}
	seen[id] = true
	for _, a := range j.Definition.After {
		found, err := w.path(a.Job, target, seen)
		if err != nil || found != nil {
			return append(found, id), err
		}
	}
	return nil, nil
}

// all reads the jobs of the graph of a job.
func (w *graphWalk) all(id string) error {
	seen := map[string]bool{id: true}
	for next := []string{id}; len(next) > 0; next = next[1:] {
		j, err := w.job(next[0])
		if err != nil {
			return err
		}
		if j == nil {
			continue
		}
		var near []string
		for _, a := range j.Definition.After {
			near = append(near, a.Job)
		}
		for _, id := range j.Followers {
			follower, err := w.job(id)
			if err != nil {
				return err
			}
			if follower != nil && follower.Definition.ComesAfter(j.ID) {
				near = append(near, id)
			}
		}
		for _, id := range near {
			if !seen[id] {
				seen[id] = true
				next = append(next, id)
			}
		}
	}
	for id := range w.jobs { // stale followers are no part of the graph
		if !seen[id] {
			delete(w.jobs, id)
		}
	}
	return nil
}

// ordered returns the jobs, each after those that it comes after.
func (w *graphWalk) ordered() (sorted []Job) {
	done := map[string]bool{}
	ids := make([]string, 0, len(w.jobs))
	for id, j := range w.jobs {
		if j != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for len(ids) > 0 {
		ready := slices.IndexFunc(ids, func(id string) bool {
			return !slices.ContainsFunc(w.jobs[id].Definition.After, func(a Dependency) bool { return !done[a.Job] && slices.Contains(ids, a.Job) })
		})
		ready = max(ready, 0) // two concurrent changes can close a circle
		sorted, done[ids[ready]] = append(sorted, *w.jobs[ids[ready]]), true
		ids = slices.Delete(ids, ready, ready+1)
	}
	return sorted
}
