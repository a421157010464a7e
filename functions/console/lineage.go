package console

import (
	"cmp"
	"net/url"

	"github.com/sortie-dev/sortie/functions/console/jobs"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// lineage is the picture of the runs that led to a run, and of those that it started: earlier
// runs at the left.
type lineage struct {
	Width, Height int
	Nodes         []lineageNode
	Edges         []lineageEdge
	// More is the number of started runs that are not shown.
	More int
}

// lineageNode is a run. Relation says what it is to the run of the page; it is empty for that run.
type lineageNode struct {
	X, Y        int
	RunID, What string
	Relation    string
	State       ui.Look
}

// lineageEdge leads from a run to one that it caused.
type lineageEdge struct{ X1, Y1, X2, Y2 int }

// The geometry of the picture, and the numbers of runs that it shows before and after the run.
const (
	nodeWidth    = 170
	nodeHeight   = 40
	nodeColumn   = nodeWidth + 50
	nodeRow      = nodeHeight + 12
	ancestors    = 4
	startedShown = 8
)

// readLineage reads the runs that led to the run, each from the next.
func (d *runData) readLineage(v *page.Visit) error {
	nodes := []lineageNode{{RunID: d.RunID, What: d.What, State: ui.StateOf(d.State, d.Skipped)}}
	for task := d.Task; len(nodes) <= ancestors; {
		id, relation := task.RetryOf, "repeated by the next one"
		if by := task.TriggeredBy; by != nil {
			id, relation = by.RunID, "triggered the next one"
		}
		if id == "" {
			break
		}
		task = contract.Task{}
		err := v.Get("/v1/runs/"+url.PathEscape(id), nil, &task)
		if page.Unknown(err) { // it has expired
			nodes = append(nodes, lineageNode{RunID: id, What: "no longer stored", Relation: relation})
			break
		}
		if err != nil {
			return err
		}
		what, _ := page.WhatOf(task)
		nodes = append(nodes, lineageNode{RunID: cmp.Or(task.RunID, id), What: what, Relation: relation, State: ui.StateOf(task.State, task.Skipped)})
	}
	d.Lineage = lineageOf(nodes, d.Triggered)
	return nil
}

// lineageOf returns the picture of a run, of the runs before it, the nearest first, and of those
// that it started. It is nil for a run alone.
func lineageOf(nodes []lineageNode, started []contract.JobRunRef) *lineage {
	if len(nodes) == 1 && len(started) == 0 {
		return nil
	}
	shown := started[:min(len(started), startedShown)]
	rows := max(len(shown), 1)
	g := &lineage{Width: len(nodes)*nodeColumn - 50, Height: rows*nodeRow - 12, More: len(started) - len(shown)}
	middle := (g.Height - nodeHeight) / 2
	for i, n := range nodes {
		n.X, n.Y = (len(nodes)-1-i)*nodeColumn, middle
		if i > 0 {
			g.Edges = append(g.Edges, lineageEdge{n.X + nodeWidth, middle + nodeHeight/2, n.X + nodeColumn, middle + nodeHeight/2})
		}
		g.Nodes = append(g.Nodes, n)
	}
	if len(shown) > 0 {
		g.Width += nodeColumn
	}
	from := (len(nodes)-1)*nodeColumn + nodeWidth
	for i, run := range shown {
		n := lineageNode{X: from + 50, Y: i * nodeRow, RunID: run.RunID, What: cmp.Or(run.JobID, run.RunID), Relation: "triggered by this run"}
		g.Edges = append(g.Edges, lineageEdge{from, middle + nodeHeight/2, n.X, n.Y + nodeHeight/2})
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

// definition is the definition that a run of a job executed, and what it is today.
type definition struct {
	// Current is the version of today. Deleted: the job does not exist any more. Gone: the
	// executed version is no longer stored.
	Current       int64
	Deleted, Gone bool
	// Changes are those from the executed version to today's.
	Changes []job.Change
}

// readDefinition compares the definition that the run executed with that of today.
func (d *runData) readDefinition(v *page.Visit) error {
	if d.JobID == "" {
		return nil
	}
	now, _, err := jobs.ReadJob(v, d.JobID)
	if page.Unknown(err) {
		d.Definition = &definition{Deleted: true}
		return nil
	}
	if err != nil {
		return err
	}
	d.Definition = &definition{Current: now.Version}
	if now.Version == d.JobVersion {
		return nil
	}
	var executed api.JobVersionAnswer
	err = v.Get("/v1/jobs/"+url.PathEscape(d.JobID)+"/versions/"+ui.Joined(d.JobVersion), nil, &executed)
	if page.Unknown(err) {
		d.Definition.Gone = true
		return nil
	}
	if err == nil {
		d.Definition.Changes, err = job.Diff(executed.Definition, now.Definition)
	}
	return err
}
