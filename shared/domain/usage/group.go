package usage

import (
	"fmt"
	"slices"
	"strings"
)

// Dimension is a part of a name by which usage is grouped.
type Dimension string

// The dimensions.
const (
	ByDay     Dimension = "day"
	ByModel   Dimension = "model"
	ByKey     Dimension = "key"
	BySession Dimension = "session"
)

// Dimensions returns all dimensions.
func Dimensions() []Dimension { return []Dimension{ByDay, ByModel, ByKey, BySession} }

// ParseDimensions parses a list that is separated by commas. An empty text is no dimension: all
// usage is one group.
func ParseDimensions(text string) (by []Dimension, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		d := Dimension(part)
		switch {
		case !slices.Contains(Dimensions(), d):
			return nil, fmt.Errorf("unknown dimension %.40q, want some of %v", part, Dimensions())
		case slices.Contains(by, d):
			return nil, fmt.Errorf("dimension %q is listed twice", part)
		}
		by = append(by, d)
	}
	return by, nil
}

// Groups sums entries by dimensions. Its zero value is not usable; see NewGroups.
type Groups struct {
	by   []Dimension
	sums map[Name]Sum
}

// NewGroups returns groups by the dimensions.
func NewGroups(by []Dimension) *Groups { return &Groups{by, map[Name]Sum{}} }

// Sessions reports whether the groups need the entries of single sessions.
func (g *Groups) Sessions() bool { return slices.Contains(g.by, BySession) }

// Add adds an entry. Groups by session need the entries of all sessions and those of single ones:
// what remains of the first is the usage without a session.
func (g *Groups) Add(e Entry) {
	n := g.of(e.Name)
	if e.Session == "" {
		g.sums[n] = g.sums[n].Plus(e.Sum)
		return
	}
	if !g.Sessions() {
		return
	}
	g.sums[n] = g.sums[n].Plus(e.Sum)
	n.Session = ""
	g.sums[n] = g.sums[n].Minus(e.Sum)
}

// Len returns the number of groups.
func (g *Groups) Len() int { return len(g.sums) }

func (g *Groups) of(n Name) (group Name) {
	for _, d := range g.by {
		switch d {
		case ByDay:
			group.Day = n.Day
		case ByModel:
			group.Model = n.Model
		case ByKey:
			group.Key = n.Key
		case BySession:
			group.Session = n.Session
		}
	}
	return group
}

// Rows returns the groups that are not zero and whose id is after the given one, ordered by their
// id, at most limit. more reports that others follow.
func (g *Groups) Rows(after string, limit int) (rows []Entry, more bool) {
	for n, s := range g.sums {
		if !s.Zero() && (after == "" || n.ID() > after) {
			rows = append(rows, Entry{Name: n, Sum: s})
		}
	}
	rows = Merge(rows)
	if more = len(rows) > limit; more {
		rows = rows[:limit]
	}
	return rows, more
}
