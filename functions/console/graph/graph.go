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

// edge leads from a job to one that comes after it.
type edge struct {
	from, to int // indexes of nodes
	// when is the condition in words; empty for success. label is its number among those of the
	// same job.
	when  string
	label int
	// points are the ends of the lines: at the right of a column and at the left of the next one.
	points []point
}

type point struct{ X, Y int }

// The geometry of the picture. waysMost is the number of places that edges behind other jobs have;
// further ones cross jobs.
const (
	width    = 170
	height   = 40
	column   = width + 110
	row      = height + 12
	waysMost = 300
)

// Of returns the picture of jobs, each after those that it comes after. It is nil for fewer than
// two jobs. here is the job of the page. runs says whether the page is that of a run.
func Of(jobs []contract.GraphJob, here string, runs bool) *Drawing {
	if len(jobs) < 2 {
		return nil
	}
	p := &Drawing{runs: runs}
	at := map[string]int{} // the index of a job in nodes
	for _, j := range jobs {
		n, depth := node{GraphJob: j, Here: j.JobID == here}, 0
		if j.RunID != "" {
			n.Look = ui.StateOf(j.State, j.Skipped)
		}
		for _, a := range j.After {
			if i, ok := at[a.JobID]; ok {
				depth = max(depth, p.nodes[i].X/column+1)
				p.nodes[i].Next = append(p.nodes[i].Next, j.JobID)
				p.edges = append(p.edges, edge{from: i, to: len(p.nodes), when: condition(a.When)})
			}
		}
		n.X = depth * column
		at[j.JobID] = len(p.nodes)
		p.nodes = append(p.nodes, n)
	}
	p.place()
	return p
}

// place is a place in a column: for a job, or for an edge that passes.
type place struct {
	node int // -1 for an edge
	// near are the places of the column before that lead here.
	near []*place
	y    int
}

// place gives each job and each passing edge a row of its column, near those that lead to it.
func (p *Drawing) place() {
	var columns [][]*place
	add := func(depth int, one *place) *place {
		for len(columns) <= depth {
			columns = append(columns, nil)
		}
		columns[depth] = append(columns[depth], one)
		return one
	}
	places := make([]*place, len(p.nodes))
	for i, n := range p.nodes {
		places[i] = add(n.X/column, &place{node: i})
	}
	ways, labels := p.ways(places, add), map[int]int{}
	most := 0
	for _, c := range columns {
		most = max(most, len(c))
	}
	p.Width, p.Height = len(columns)*column-(column-width), most*row-(row-height)
	for _, c := range columns {
		for _, one := range c {
			for _, from := range one.near {
				one.y += from.y / len(one.near)
			}
		}
		slices.SortStableFunc(c, func(a, b *place) int { return cmp.Compare(a.y, b.y) })
		for n, one := range c {
			one.y = (most-len(c))*row/2 + n*row
		}
	}
	for i := range p.nodes {
		p.nodes[i].Y = places[i].y
	}
	for i := range p.edges {
		e := &p.edges[i]
		if e.when != "" {
			e.label = labels[e.from]
			labels[e.from]++
		}
		p.draw(e, ways[i])
	}
}

// ways adds a place in each column that an edge passes, and says which places lead to which.
func (p *Drawing) ways(places []*place, add func(int, *place) *place) map[int][]*place {
	ways, count := map[int][]*place{}, 0
	for i, e := range p.edges {
		last := places[e.from]
		for depth := p.nodes[e.from].X/column + 1; depth < p.nodes[e.to].X/column && count < waysMost; depth++ {
			count++
			next := add(depth, &place{node: -1, near: []*place{last}})
			ways[i] = append(ways[i], next)
			last = next
		}
		places[e.to].near = append(places[e.to].near, last)
	}
	return ways
}

// draw adds the points of an edge.
func (p *Drawing) draw(e *edge, way []*place) {
	from, to := p.nodes[e.from], p.nodes[e.to]
	e.points = []point{{from.X + width, from.Y + height/2}}
	for n, one := range way {
		x, y := from.X+(n+1)*column, one.y+height/2
		e.points = append(e.points, point{x, y}, point{x + width, y})
	}
	e.points = append(e.points, point{to.X, to.Y + height/2})
}

// condition returns how the run of a job must end; empty for success.
func condition(when string) string {
	return map[string]string{"failure": "after a failure", "always": "after any end"}[when]
}
