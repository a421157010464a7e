package console

import (
	"net/http"
	"strconv"

	"github.com/sortie-dev/sortie/functions/console/inference"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// aboutPage shows what the deployment is, its limits, and the health of its parts.
var aboutPage = page.Page{Name: "about", Path: "about", Label: "About", Show: showAbout}

// aboutData is the content of the page.
type aboutData struct {
	Version, API, URL string
	Parts             []partRow
	Pools             []inference.EngineRow
	Budgets           []inference.BudgetView
	Limits            [][2]string
	Scopes            []access.Scope
	Links             []linkRow
	Settings          []page.Setting
}

// partRow is the health of a part.
type partRow struct {
	Name, Details string
	Look          ui.Look
}

// linkRow is a resource of the API. The scope is empty if none is needed.
type linkRow struct {
	Label, Path string
	Scope       access.Scope
}

var (
	partGood = ui.Look{Word: "Works", Class: "good", Icon: "check"}
	partBad  = ui.Look{Word: "Fails", Class: "bad", Icon: "cross"}
)

func showAbout(v *page.Visit) (page.View, error) {
	data := aboutData{
		Version: v.Config.Version, URL: v.Config.URL, Scopes: v.Session.Token.Scopes,
		Limits: [][2]string{
			{"Size of a form", ui.Size(session.FormLimit)},
			{"Size of a response that a page reads", ui.Size(page.AnswerLimit)},
			{"Session of a browser", ui.Duration(session.SessionLife)},
			{"Link for the sign-in", ui.Duration(session.TicketLife)},
		},
		Links: []linkRow{
			{"Description of the API (OpenAPI)", "/openapi.json", ""},
			{"Metrics", "/metrics", access.MetricsRead},
			{"Published keys", keysPath, ""},
			{"JSON Schema of jobs", "/schemas/job.json", ""},
			{"Readiness", "/readyz", ""},
		},
	}
	if v.May(access.Admin) {
		data.Settings = v.Config.Settings
	}
	addProbes(v, &data)
	if v.May(access.EventsRead) {
		if err := addStream(v, &data); err != nil {
			return page.View{}, err
		}
	}
	if v.May(access.RunsRead) {
		if err := addPools(v, &data); err != nil {
			return page.View{}, err
		}
	}
	return page.View{Title: "About", JSON: "/readyz", Command: ui.Command("version"), Content: data.content}, nil
}

// addProbes adds the results of the health checks.
func addProbes(v *page.Visit, data *aboutData) {
	for _, probe := range [][2]string{{"Server", "/healthz"}, {"Store, which accepts changes", "/readyz"}} {
		var health contract.Health
		row := partRow{Name: probe[0], Look: partGood}
		err := v.Get(probe[1], nil, &health)
		switch p := page.ProblemOf(err); {
		case p != nil && p.Body.Status == http.StatusNotFound:
			continue // the deployment has no such check
		case p != nil:
			row.Look, row.Details = partBad, p.Body.Detail
		case err != nil:
			row.Look, row.Details = partBad, "no response"
		default:
			row.Details = "version " + health.Version
		}
		data.Parts = append(data.Parts, row)
	}
}

// addStream adds the stream of events.
func addStream(v *page.Visit, data *aboutData) error {
	end, err := endOfStream(v)
	if page.Unknown(err) {
		return nil
	}
	row := partRow{Name: "Stream of events", Look: partGood, Details: strconv.FormatInt(end.Position, 10) + " events"}
	if p := page.ProblemOf(err); p != nil {
		row.Look, row.Details = partBad, p.Body.Detail
	} else if err != nil {
		return err
	}
	data.Parts = append(data.Parts, row)
	return nil
}

// addPools adds the pools with their limits, and the budgets.
func addPools(v *page.Visit, data *aboutData) error {
	pools, err := inference.ReadPools(v)
	if err != nil {
		return err
	}
	if data.Pools, err = inference.ReadHealths(v, pools); err != nil {
		return err
	}
	for _, p := range data.Pools {
		row := partRow{Name: "Pool " + p.ID, Look: p.Look}
		if p.Health.LastError != nil {
			row.Details = p.Health.LastError.Code + ": " + p.Health.LastError.Message
		}
		data.Parts = append(data.Parts, row)
	}
	var found contract.Capabilities
	if err := v.Get("/v1/capabilities", nil, &found); err != nil && !page.Unknown(err) {
		return err
	}
	data.API = found.APIVersion
	for _, scope := range []string{"tenant", "project:" + v.Session.Token.Project} {
		b, err := inference.ReadBudget(v, scope)
		if page.Unknown(err) {
			return nil
		}
		if err != nil {
			return err
		}
		data.Budgets = append(data.Budgets, b)
	}
	return nil
}
