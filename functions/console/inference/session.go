package inference

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// SessionPage shows a session of inference tasks.
var SessionPage = page.Page{
	Name: "session", Path: "inference/sessions/{session_id}", Scope: access.RunsRead, Show: showSession,
	Actions: []page.Action{{Path: "inference/sessions/{session_id}/close", Scope: access.RunsWrite, Do: closeSession}},
}

// sessionData is the content of the page for a session.
type sessionData struct {
	contract.Session
	Budget BudgetView
	// Usage is nil without a task of the last day among those that were read.
	Usage *usage
}

// Expires returns the seconds until the session expires.
func (d sessionData) Expires() float64 { return float64(d.TTLMS) / 1000 }

func showSession(v *page.Visit) (page.View, error) {
	id := v.Request.PathValue("session_id")
	path := "/v1/sessions/" + url.PathEscape(id)
	var data sessionData
	var tasks contract.TaskList
	if err := page.Together(
		func() error { return v.Get(path, nil, &data.Session) },
		func() (err error) {
			data.Budget, err = ReadBudget(v, "session:"+id)
			return err
		},
		func() (err error) {
			tasks, err = v.ListRuns(url.Values{"kind": {spec.KindInference}, "limit": {strconv.Itoa(sessionRead)}})
			return err
		},
	); err != nil {
		return page.View{}, err
	}
	data.Usage = usageOf(ofSession(tasks.Tasks, data.SessionID), tasks.NextCursor != "", v.Now())
	if data.Usage != nil {
		data.Usage.spend(data.Budget.Budget, tasks.Tasks[len(tasks.Tasks)-1].CreatedAt)
	}
	return page.View{Title: "Session " + ui.Short(60, id), JSON: path, Command: ui.Command("sessions", "show", id), Content: data.content}, nil
}

// closeSession deletes a session.
func closeSession(v *page.Visit) (string, error) {
	return "inference?done=session", v.Remove("/v1/sessions/" + url.PathEscape(v.Request.PathValue("session_id")))
}

// sessionRead is the number of newest tasks that the page of a session reads for its use. The API
// has no list of the tasks of a session.
const sessionRead = 100

// sessionUse is a session of the newest tasks, with their use of tokens.
type sessionUse struct {
	ID            string
	Tasks, Tokens int
	LastAt        time.Time
	// Usage is nil without a task of the last day.
	Usage *usage
}

// sessionsOf returns the sessions of tasks that are sorted by age, the newest first.
func sessionsOf(tasks []contract.Task, more bool, now time.Time) (sessions []sessionUse) {
	for _, t := range tasks {
		if t.Inference == nil || t.Inference.SessionID == "" {
			continue
		}
		id := t.Inference.SessionID
		if slices.ContainsFunc(sessions, func(s sessionUse) bool { return s.ID == id }) {
			continue
		}
		own := ofSession(tasks, id)
		s := sessionUse{ID: id, Tasks: len(own), LastAt: t.CreatedAt, Usage: usageOf(own, more, now)}
		for _, one := range own {
			s.Tokens += tokensOf(one)
		}
		sessions = append(sessions, s)
	}
	return sessions
}

// ofSession returns the tasks of a session.
func ofSession(tasks []contract.Task, id string) (own []contract.Task) {
	for _, t := range tasks {
		if t.Inference != nil && t.Inference.SessionID == id {
			own = append(own, t)
		}
	}
	return own
}
