package inference

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ListPage shows models, engines with their replicas, budgets and the newest tasks.
var ListPage = page.Page{
	Name: "inference", Path: "inference", Label: "Inference", Scope: access.RunsRead, Query: []string{"done"}, Show: showInference,
	Actions: []page.Action{{Path: "inference/budget", Scope: access.Quota, Do: putBudget}},
}

// poolReads is the largest number of pools whose state a page reads.
const poolReads = 20

// tasksRead is the number of newest tasks that the page reads, for the use of the last day. The
// API has no index by kind, and searches twenty times as many runs. tasksShown is the number of
// tasks in the list.
const (
	tasksRead  = 24
	tasksShown = 20
)

// inferenceData is the content of the page.
type inferenceData struct {
	Engines  []EngineRow
	Models   []contract.Model
	Budgets  []BudgetView
	Tasks    []inferenceRow
	Sessions []sessionUse
	// Spending is nil if no use of the budget is known.
	Spending *spending
	// Usage is nil without a task of the last day.
	Usage *usage
}

// EngineRow is a pool with an engine, and its state.
type EngineRow struct {
	contract.Pool
	Health contract.PoolHealth
	Look   ui.Look
}

// inferenceRow is an inference task in the list.
type inferenceRow struct {
	page.RunRow
	// Rate is the number of tokens a second; 0 if unknown.
	Rate float64
}

// replicaLook returns the look of a replica.
func replicaLook(r contract.ReplicaHealth) ui.Look {
	switch {
	case r.Ready:
		return ui.Look{Word: "Ready", Class: "good", Icon: "check"}
	case r.Machine != nil && r.Machine.State != "serving":
		return ui.Look{Word: strings.ToUpper(r.Machine.State[:1]) + r.Machine.State[1:], Class: "start", Icon: "half", Busy: true}
	case r.Live:
		return ui.Look{Word: "Not ready", Class: "wait", Icon: "clock", Busy: true}
	}
	return ui.Look{Word: "Unreachable", Class: "bad", Icon: "cross"}
}

// poolLook returns the look of a pool.
func poolLook(h contract.PoolHealth) ui.Look {
	switch {
	case h.Draining:
		return ui.Look{Word: "Draining", Class: "retry", Icon: "stop", Busy: true}
	case h.Ready:
		return ui.Look{Word: "Ready", Class: "good", Icon: "check"}
	case h.Live:
		return ui.Look{Word: "Not ready", Class: "wait", Icon: "clock", Busy: true}
	}
	return ui.Look{Word: "Unreadable", Class: "bad", Icon: "cross"}
}

func showInference(v *page.Visit) (page.View, error) {
	data := inferenceData{Budgets: make([]BudgetView, 2)}
	var models contract.ModelList
	var figures contract.Activity
	var tasks contract.TaskList
	budget := func(i int, scope string) func() error {
		return func() (err error) {
			data.Budgets[i], err = ReadBudget(v, scope)
			return err
		}
	}
	if err := page.Together(
		func() error { return data.readEngines(v) },
		func() error { return v.Get("/v1/catalog/models", url.Values{"limit": {"50"}}, &models) },
		budget(0, "tenant"), budget(1, "project:"+v.Session.Token.Project),
		func() error { return v.Get("/v1/activity", url.Values{"window": {"24h"}}, &figures) },
		func() (err error) {
			tasks, err = v.ListRuns(url.Values{"kind": {spec.KindInference}, "limit": {strconv.Itoa(tasksRead)}})
			return err
		},
	); err != nil {
		return page.View{}, err
	}
	data.Models, data.Spending = models.Models, spendingOf(figures, data.Budgets[0].Budget)
	if data.Usage = usageOf(tasks.Tasks, tasks.NextCursor != "", v.Now()); data.Usage != nil {
		data.Usage.spend(data.Budgets[0].Budget, tasks.Tasks[len(tasks.Tasks)-1].CreatedAt)
	}
	data.Sessions = sessionsOf(tasks.Tasks, tasks.NextCursor != "", v.Now())
	for _, t := range tasks.Tasks[:min(len(tasks.Tasks), tasksShown)] {
		row := inferenceRow{RunRow: page.RowOf(t, v.Now())}
		if d := t.Inference; d != nil {
			row.Rate = rateOf(d.TokensOut, d.DecodeMS)
		}
		data.Tasks = append(data.Tasks, row)
	}
	return page.View{Title: "Inference", JSON: "/v1/capabilities", Command: ui.Command("models", "list"), Content: data.content}, nil
}

// readEngines reads the pools with an engine and their states.
func (d *inferenceData) readEngines(v *page.Visit) error {
	pools, err := ReadPools(v)
	if err != nil {
		return err
	}
	d.Engines, err = ReadHealths(v, slices.DeleteFunc(pools, func(p contract.Pool) bool { return p.Engine == nil }))
	return err
}

// rateOf returns tokens a second; 0 if unknown.
func rateOf(tokens *int, ms *int64) float64 {
	if tokens == nil || ms == nil || *ms <= 0 {
		return 0
	}
	return float64(*tokens) * 1000 / float64(*ms)
}

// ReadPools reads the pools.
func ReadPools(v *page.Visit) ([]contract.Pool, error) {
	var list contract.PoolList
	err := v.Get("/v1/pools", nil, &list)
	return list.Pools, err
}

// ReadHealths reads the states of the first pools, at the same time.
func ReadHealths(v *page.Visit, pools []contract.Pool) ([]EngineRow, error) {
	pools = pools[:min(len(pools), poolReads)]
	rows, errs := make([]EngineRow, len(pools)), make([]error, len(pools))
	var reading sync.WaitGroup
	for i := range pools {
		reading.Go(func() {
			rows[i].Pool = pools[i]
			errs[i] = v.Get("/v1/pools/"+url.PathEscape(pools[i].ID)+"/health", nil, &rows[i].Health)
			rows[i].Look = poolLook(rows[i].Health)
		})
	}
	reading.Wait()
	for _, err := range errs {
		if err != nil && !page.Unknown(err) {
			return nil, err
		}
	}
	return rows, nil
}

// BudgetView is a budget with its parts as the page shows them.
type BudgetView struct {
	contract.Budget
	Parts []budgetPart
}

// budgetPart is a part of a budget. Share is its use in percent of the limit.
type budgetPart struct {
	Name, Field              string
	Limit, Held, Spent, Left string
	Share                    int
	Limited                  bool
	// Value is the limit as the form has it.
	Value string
}

// ReadBudget reads the budget of a scope.
func ReadBudget(v *page.Visit, scope string) (BudgetView, error) {
	var b BudgetView
	if err := v.Get("/v1/budgets/"+url.PathEscape(scope), nil, &b.Budget); err != nil {
		return b, err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	millis := func(n int64) string { return ui.Seconds(float64(n) / 1000) }
	b.Parts = []budgetPart{
		partOf("Turns", "turns", b.Limit.Turns, b.Held.Turns, b.Spent.Turns, b.Remaining.Turns, number),
		partOf("Tokens", "tokens", b.Limit.Tokens, b.Held.Tokens, b.Spent.Tokens, b.Remaining.Tokens, number),
		partOf("Time", "time_ms", b.Limit.TimeMS, b.Held.TimeMS, b.Spent.TimeMS, b.Remaining.TimeMS, millis),
		partOf("Cost", "cost_nanodollars", b.Limit.CostNano, b.Held.CostNano, b.Spent.CostNano, b.Remaining.CostNano, dollars),
	}
	return b, nil
}

// dollars returns an amount of billionths of a dollar.
func dollars(nano int64) string { return "$" + strconv.FormatFloat(float64(nano)/1e9, 'f', -1, 64) }

func partOf(name, field string, limit *int64, held, spent int64, left *int64, show func(int64) string) budgetPart {
	p := budgetPart{Name: name, Field: field, Held: show(held), Spent: show(spent)}
	if limit == nil {
		return p
	}
	p.Limited, p.Limit, p.Value = true, show(*limit), strconv.FormatInt(*limit, 10)
	if left != nil {
		p.Left = show(*left)
	}
	p.Share = 100
	if *limit > 0 {
		p.Share = int(min(100, max(0, (held+spent)*100 / *limit)))
	}
	return p
}

// putBudget sets the limits of a budget. An empty field removes the limit.
func putBudget(v *page.Visit) (string, error) {
	var limit contract.BudgetLimit
	form := v.Request.PostForm
	for field, to := range map[string]**int64{"turns": &limit.Turns, "tokens": &limit.Tokens, "time_ms": &limit.TimeMS, "cost_nanodollars": &limit.CostNano} {
		text := strings.TrimSpace(form.Get(field))
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", fault.Invalid(field, "malformed limit, want a whole number")
		}
		*to = &n
	}
	response, err := v.Call(http.MethodPut, "/v1/budgets/"+url.PathEscape(form.Get("scope")), nil, limit, nil)
	if err != nil {
		return "", err
	}
	return "inference?done=budget", page.Read(response, nil)
}
