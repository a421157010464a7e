package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// poolsPage lists the pools, and poolPage shows one.
var (
	poolsPage = page.Page{
		Name: "pools", Path: "pools", Label: "Pools", Live: true, Scope: access.RunsRead, Query: []string{"done"},
		Show: showPools,
	}
	poolPage = page.Page{
		Name: "pool", Path: "pools/{pool_id}", Live: true, Scope: access.RunsRead, Query: []string{"done"},
		Show: showPool,
		Actions: []page.Action{
			{Path: "pools/{pool_id}/drain", Scope: access.Admin, Do: drainPool},
			{Path: "pools/{pool_id}/resume", Scope: access.Admin, Do: resumePool},
			{Path: "pools/{pool_id}/reload", Scope: access.Admin, Do: reloadPool},
			{Path: "pools/{pool_id}/limits", Scope: access.Admin, Do: limitPool},
		},
	}
)

// poolRow is a pool as the pages show it.
type poolRow struct {
	contract.Pool
	State ui.Look
	Slots meter
}

// poolRowOf returns a pool with its state and its use.
func poolRowOf(p contract.Pool) poolRow {
	row := poolRow{Pool: p, State: ui.Look{Word: "Open", Class: "good", Icon: "check"}, Slots: meterOf(p.Held, p.Limit)}
	switch {
	case p.Draining:
		row.State = ui.Look{Word: "Draining", Class: "wait", Icon: "pause"}
	case p.QueueLimit > 0 && p.Queued >= p.QueueLimit:
		row.State = ui.Look{Word: "Queue full", Class: "bad", Icon: "cross"}
	case p.Limit > 0 && p.Held >= p.Limit:
		row.State = ui.Look{Word: "Full", Class: "run", Icon: "half"}
	}
	return row
}

// meter is a bar of the used part of a limit, in hundredths. Class is its colour.
type meter struct {
	Part  int
	Class string
	Text  string
}

func meterOf(used, limit int) meter {
	if limit == 0 {
		return meter{Text: strconv.Itoa(used) + ", no limit"}
	}
	m := meter{Part: min(100*used/limit, 100), Class: "run", Text: strconv.Itoa(used) + " of " + strconv.Itoa(limit)}
	if used >= limit {
		m.Class = "wait"
	}
	return m
}

// poolsData is the content of the list.
type poolsData struct{ Pools []poolRow }

func showPools(v *page.Visit) (page.View, error) {
	var list contract.PoolList
	if err := v.Get("/v1/pools", nil, &list); err != nil {
		return page.View{}, err
	}
	data := poolsData{}
	for _, p := range list.Pools {
		data.Pools = append(data.Pools, poolRowOf(p))
	}
	return page.View{Title: "Pools", JSON: "/v1/pools", Command: ui.Command("pools", "list"), Content: data.content}, nil
}

// queuePredicted is the number of runs at the head of the queue whose expected start the page
// asks for. Each is a request.
const queuePredicted = 5

// poolData is the content of the page of a pool.
type poolData struct {
	poolRow
	Health contract.PoolHealth
	Queue  []queuedRun
	Wait   *contract.PoolWait
}

// queuedRun is a run in the queue. Expected is nil if it was not asked for.
type queuedRun struct {
	page.RunRow
	Position int
	Expected *contract.ExpectedStart
	Message  string
}

func showPool(v *page.Visit) (page.View, error) {
	id := v.Request.PathValue("pool_id")
	path := "/v1/pools/" + url.PathEscape(id)
	data := poolData{}
	if err := page.Together(
		func() error { return v.Get(path, nil, &data.Pool) }, func() error { return v.Get(path+"/health", nil, &data.Health) },
	); err != nil {
		return page.View{}, err
	}
	data.poolRow, data.Wait = poolRowOf(data.Pool), data.Health.Metrics.ExpectedWait
	if err := data.readQueue(v); err != nil {
		return page.View{}, err
	}
	return page.View{Title: id + " · pool", JSON: path + "/health", Command: ui.Command("pools", "show", id), Content: data.content}, nil
}

// readQueue adds the runs at the head of the queue, in its order.
func (d *poolData) readQueue(v *page.Visit) error {
	for i, t := range d.Health.Waiting {
		d.Queue = append(d.Queue, queuedRun{RunRow: page.RowOf(t, v.Now()), Position: i + 1})
	}
	reads := make([]func() error, min(len(d.Queue), queuePredicted))
	for i := range reads {
		reads[i] = func() error {
			var why contract.Explanation
			err := v.Get("/v1/runs/"+url.PathEscape(d.Queue[i].RunID)+"/explain", nil, &why)
			d.Queue[i].Expected, d.Queue[i].Message = why.Expected, why.Message
			return err
		}
	}
	return page.Together(reads...)
}

// drainPool stops the admission of a pool.
func drainPool(v *page.Visit) (string, error) {
	request := contract.PoolDrain{}
	deadline, given, err := formNumber(v, "deadlineSeconds")
	if err != nil {
		return "", err
	}
	if given {
		request.DeadlineSeconds = &deadline
	}
	return poolDone(v, "drain", "pool-draining", request)
}

// resumePool starts the admission of a pool again.
func resumePool(v *page.Visit) (string, error) {
	return poolDone(v, "resume", "pool-resumed", struct{}{})
}

// reloadPool makes a pool of an engine ask its replicas again, or serve another model.
func reloadPool(v *page.Visit) (string, error) {
	deadline, _, err := formNumber(v, "deadlineSeconds")
	if err != nil {
		return "", err
	}
	return poolDone(v, "reload", "pool-reloaded", contract.PoolReload{Model: strings.TrimSpace(v.Request.PostForm.Get("model")), DeadlineSeconds: deadline})
}

func poolDone(v *page.Visit, operation, done string, body any) (string, error) {
	id := v.Request.PathValue("pool_id")
	if err := v.Post("/v1/pools/"+url.PathEscape(id)+"/"+operation, body, nil); err != nil {
		return "", err
	}
	return ui.PoolPath(id) + "?done=" + done, nil
}

// formNumber returns a field of a form that is a whole number; given is false if it is empty.
func formNumber(v *page.Visit, name string) (n int, given bool, err error) {
	text := strings.TrimSpace(v.Request.PostForm.Get(name))
	if text == "" {
		return 0, false, nil
	}
	if n, err = strconv.Atoi(text); err != nil {
		return 0, false, fault.Invalid(name, "%q, want a whole number", ui.Short(40, text))
	}
	return n, true, nil
}

// limitPool changes the limits of a pool, and nothing else of its definition.
func limitPool(v *page.Visit) (string, error) {
	id := v.Request.PathValue("pool_id")
	path := "/v1/pools/" + url.PathEscape(id)
	response, err := v.Call(http.MethodGet, path, nil, nil, nil)
	if err != nil {
		return "", err
	}
	var p contract.Pool
	if err := page.Read(response, &p); err != nil {
		return "", err
	}
	changed := contract.PoolDefinition{Runner: p.Runner, Settings: p.Settings, Fallback: p.Fallback, Warm: p.Warm, Engine: p.Engine, Sharing: p.Sharing, From: p.From, Limit: &p.Limit, QueueLimit: &p.QueueLimit}
	if p.From != nil {
		changed.Limit = nil
	}
	for name, to := range map[string]**int{"limit": &changed.Limit, "queueLimit": &changed.QueueLimit} {
		n, given, err := formNumber(v, name)
		if err != nil {
			return "", err
		}
		if given {
			*to = &n
		}
	}
	response, err = v.Call(http.MethodPut, path, nil, changed, http.Header{"If-Match": {response.Header.Get("ETag")}})
	if err != nil {
		return "", err
	}
	if err := page.Read(response, nil); err != nil {
		return "", err
	}
	return ui.PoolPath(id) + "?done=pool-limits", nil
}

// LongestWait is the time that the first run of the queue waits.
func (d poolData) LongestWait() time.Duration {
	return time.Duration(d.Health.Metrics.LongestWaitSeconds * float64(time.Second))
}
