// Package children shows the children of a run: a page with all of them, and their part of the page
// of the run.
package children

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ListPage lists the children of a run in the order of their items.
var ListPage = page.Page{
	Name: "children", Path: "runs/{run_id}/children", Scope: access.RunsRead, Query: []string{"state", "cursor"}, Show: showChildren, Live: true,
}

// pageRows is the number of children on the page, partRows that on the page of the run.
const (
	pageRows = 50
	partRows = 10
)

// listData is the content of the page.
type listData struct {
	RunID, What string
	// State is the state of all children of the list; empty for any.
	State string
	List  contract.RunChildren
	Pager ui.Pager
}

func showChildren(v *page.Visit) (page.View, error) {
	query := v.Request.URL.Query()
	data := listData{State: query.Get("state")}
	if data.State != "" && !slices.Contains(fan.Statuses(), fan.Status(data.State)) {
		return page.View{}, fault.Invalid("state", "unknown state, want one of %v", fan.Statuses())
	}
	var parent contract.Task
	if err := v.Get("/v1/runs/"+url.PathEscape(v.Request.PathValue("run_id")), nil, &parent); err != nil {
		return page.View{}, err
	}
	data.RunID = parent.RunID
	data.What, _ = page.WhatOf(parent)
	asked := queryOf(data.State, pageRows)
	if cursor := query.Get("cursor"); cursor != "" {
		asked.Set("cursor", cursor)
	}
	path := "/v1/runs/" + url.PathEscape(data.RunID) + "/children"
	if err := v.Get(path, asked, &data.List); err != nil {
		return page.View{}, err
	}
	filter := url.Values{}
	line := []string{"runs", "children", data.RunID}
	if data.State != "" {
		filter.Set("state", data.State)
		line = append(line, "--state", data.State)
	}
	data.Pager = ui.PagerOf(pathOf(data.RunID), filter, query.Get("cursor"), data.List.NextCursor)
	return page.View{
		Title: "Children of " + data.RunID, JSON: ui.WithQuery(path, asked), Command: ui.Command(line...), Content: data.content, RunID: data.RunID,
	}, nil
}

func queryOf(state string, limit int) url.Values {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if state != "" {
		query.Set("state", state)
	}
	return query
}

// pathOf returns the address of the page of a run's children, below the console.
func pathOf(runID string) string { return ui.RunPath(runID) + "/children" }

// Part is what the page of a run shows of its children.
type Part struct {
	RunID  string
	Counts contract.Children
	// Rows are the first children in a state: failed ones if there are any, else running ones,
	// else all.
	State string
	Rows  []contract.RunChild
	// More reports that there are more children in this state.
	More bool
}

// Read returns the part of a run; nil for a run without children.
func Read(v *page.Visit, parent contract.Task) (*Part, error) {
	if parent.Children == nil {
		return nil, nil
	}
	p := &Part{RunID: parent.RunID, Counts: *parent.Children}
	switch {
	case p.Counts.Failed > 0:
		p.State = string(fan.StatusFailed)
	case p.Counts.Running > 0:
		p.State = string(fan.StatusRunning)
	}
	var list contract.RunChildren
	if err := v.Get("/v1/runs/"+url.PathEscape(parent.RunID)+"/children", queryOf(p.State, partRows), &list); err != nil {
		return nil, err
	}
	p.Rows, p.More = list.Children, list.NextCursor != ""
	return p, nil
}

// Unsuccessful returns the number of children that have not succeeded.
func (p *Part) Unsuccessful() int {
	if p == nil {
		return 0
	}
	return p.Counts.Total - p.Counts.Succeeded
}

// share is a part of the bar: the children in a state.
type share struct {
	State string
	Count int
	Look  ui.Look
	X, W  float64
}

// barWidth is the width of the bar, leastShare that of a part with few children.
const (
	barWidth   = 960.0
	leastShare = 6.0
)

// sharesOf returns the states that children are in, in the order of a bar.
func sharesOf(c contract.Children) (shares []share) {
	least := 0.0
	for _, s := range []share{
		{State: "succeeded", Count: c.Succeeded},
		{State: "failed", Count: c.Failed},
		{State: "cancelled", Count: c.Cancelled},
		{State: "skipped", Count: c.Skipped},
		{State: "running", Count: c.Running},
		{State: "waiting", Count: c.Waiting},
	} {
		if s.Count > 0 {
			s.Look = lookOf(s.State)
			shares, least = append(shares, s), least+leastShare
		}
	}
	x := 0.0
	for i := range shares {
		s := &shares[i]
		s.X, s.W = x, leastShare+(barWidth-least)*float64(s.Count)/float64(max(c.Total, 1))
		x += s.W
	}
	return shares
}

// lookOf returns the look of a state of children.
func lookOf(state string) ui.Look {
	look, ok := map[fan.Status]ui.Look{
		fan.StatusWaiting:   {Class: "wait", Icon: "clock"},
		fan.StatusRunning:   {Class: "run", Icon: "play"},
		fan.StatusSucceeded: {Class: "good", Icon: "check"},
		fan.StatusFailed:    {Class: "bad", Icon: "cross"},
		fan.StatusCancelled: {Class: "off", Icon: "slash"},
		fan.StatusSkipped:   {Class: "off", Icon: "skip"},
	}[fan.Status(state)]
	if !ok {
		look = ui.Look{Class: "off", Icon: "question"}
	}
	if state != "" {
		look.Word = strings.ToUpper(state[:1]) + state[1:]
	}
	return look
}

// stoppedTexts say why no further child starts.
var stoppedTexts = map[string]string{
	"failures": "More children have failed than the job permits: no further one starts.", "cancelled": "The run is cancelled: no further child starts.",
	"deadline": "The deadline of the run is over: no further child starts.",
}
