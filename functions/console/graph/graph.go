// Package graph draws jobs that come after each other: as a picture with links, and as a table.
package graph

import (
	"cmp"
	"slices"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Drawing is the picture of a graph. A job is at the right of those that it comes after.
type Drawing struct {
	Width, Height int
	nodes         []node
	edges         []edge
	// runs: the page is that of a run, so jobs have the states of their runs.
	runs bool
}

// node is a job of the picture.
type node struct {
	contract.GraphJob
	X, Y int
	// Here: the page is that of the job.
	Here bool
	// Look is that of the run; empty without one.
	Look ui.Look
	// Next are the jobs that come after the job.
	Next []string
}

// edge leads from a job to one that comes after it. When is empty for success.
type edge struct {
	X1, Y1, X2, Y2 int
	From, To, When string
}

// The geometry of the picture.
const (
	width  = 170
	height = 40
	column = width + 80
	row    = height + 12
)

// Of returns the picture of jobs, each after those that it comes after. It is nil for fewer than
// two jobs. here is the job of the page. runs says whether the page is that of a run.
func Of(jobs []contract.GraphJob, here string, runs bool) *Drawing {
	if len(jobs) < 2 {
		return nil
	}
	p := &Drawing{runs: runs}
	at := map[string]int{} // the index of a job in nodes
	var columns [][]int
	for _, j := range jobs {
		n, depth := node{GraphJob: j, Here: j.JobID == here}, 0
		if j.RunID != "" {
			n.Look = ui.StateOf(j.State, j.Skipped)
		}
		for _, a := range j.After {
			if i, ok := at[a.JobID]; ok {
				depth = max(depth, p.nodes[i].X/column+1)
				p.nodes[i].Next = append(p.nodes[i].Next, j.JobID)
			}
		}
		n.X = depth * column
		for len(columns) <= depth {
			columns = append(columns, nil)
		}
		at[j.JobID] = len(p.nodes)
		columns[depth] = append(columns[depth], len(p.nodes))
		p.nodes = append(p.nodes, n)
	}
	p.place(columns, at)
	for _, n := range p.nodes {
		for _, a := range n.After {
			if i, ok := at[a.JobID]; ok {
				from := p.nodes[i]
				p.edges = append(p.edges, edge{from.X + width, from.Y + height/2, n.X, n.Y + height/2, from.JobID, n.JobID, condition(a.When)})
			}
		}
	}
	return p
}

// place gives each job a row of its column, near those that it comes after.
func (p *Drawing) place(columns [][]int, at map[string]int) {
	most := 0
	for _, c := range columns {
		most = max(most, len(c))
	}
	p.Width, p.Height = len(columns)*column-(column-width), most*row-(row-height)
	for _, c := range columns {
		middle := map[int]int{}
		for _, i := range c {
			for _, a := range p.nodes[i].After {
				if from, ok := at[a.JobID]; ok {
					middle[i] += p.nodes[from].Y / len(p.nodes[i].After)
				}
			}
		}
		slices.SortStableFunc(c, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
		first := (most - len(c)) * row / 2
		for n, i := range c {
			p.nodes[i].Y = first + n*row
		}
	}
}

// condition returns how the run of a job must end; empty for success.
func condition(when string) string {
	return map[string]string{"failure": "after a failure", "always": "after any end"}[when]
}
