package console

import (
	"net/http"
	"strconv"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// aboutPage shows what the deployment is, its limits, and the health of its parts.
var aboutPage = page{name: "about", path: "about", label: "About", show: showAbout}

// aboutData is the content of the page.
type aboutData struct {
	Version, API, URL string
	Parts             []partRow
	Pools             []engineRow
	Budgets           []budgetView
	Limits            [][2]string
	Scopes            []access.Scope
	Links             []linkRow
	Settings          []Setting
}

// Setting is a setting of the deployment that differs from its default.
type Setting struct{ Name, Value string }

// partRow is the health of a part.
type partRow struct {
	Name, Details string
	Look          look
}

// linkRow is a resource of the API. The scope is empty if none is needed.
type linkRow struct {
	Label, Path string
	Scope       access.Scope
}

var (
	partGood = look{Word: "Works", Class: "good", Icon: "check"}
	partBad  = look{Word: "Fails", Class: "bad", Icon: "cross"}
)

func showAbout(v *visit) (view, error) {
	data := aboutData{
		Version: v.c.Version, URL: v.c.URL, Scopes: v.session.token.Scopes,
		Limits: [][2]string{
			{"Size of a form", size(formLimit)},
			{"Size of a response that a page reads", size(answerLimit)},
			{"Session of a browser", duration(SessionLife)},
			{"Link for the sign-in", duration(TicketLife)},
		},
		Links: []linkRow{
			{"Description of the API (OpenAPI)", "/openapi.json", ""},
			{"Metrics", "/metrics", access.MetricsRead},
			{"Published keys", keysPath, ""},
			{"JSON Schema of jobs", "/schemas/job.json", ""},
			{"Readiness", "/readyz", ""},
		},
	}
	if v.may(access.Admin) {
		data.Settings = v.c.Settings
	}
	v.addProbes(&data)
	if v.may(access.EventsRead) {
		if err := v.addStream(&data); err != nil {
			return view{}, err
		}
	}
	if v.may(access.RunsRead) {
		if err := v.addPools(&data); err != nil {
			return view{}, err
		}
	}
	return view{Title: "About", JSON: "/readyz", Command: command("version"), Content: data.content}, nil
}

// addProbes adds the results of the health checks.
func (v *visit) addProbes(data *aboutData) {
	for _, probe := range [][2]string{{"Server", "/healthz"}, {"Store, which accepts changes", "/readyz"}} {
		var health contract.Health
		row := partRow{Name: probe[0], Look: partGood}
		err := v.get(probe[1], nil, &health)
		switch p := problemOf(err); {
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
func (v *visit) addStream(data *aboutData) error {
	end, err := v.endOfStream()
	if unknown(err) {
		return nil
	}
	row := partRow{Name: "Stream of events", Look: partGood, Details: strconv.FormatInt(end.Position, 10) + " events"}
	if p := problemOf(err); p != nil {
		row.Look, row.Details = partBad, p.Body.Detail
	} else if err != nil {
		return err
	}
	data.Parts = append(data.Parts, row)
	return nil
}

// addPools adds the pools with their limits, and the budgets.
func (v *visit) addPools(data *aboutData) error {
	pools, err := v.pools()
	if err != nil {
		return err
	}
	if data.Pools, err = v.healths(pools); err != nil {
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
	if err := v.get("/v1/capabilities", nil, &found); err != nil && !unknown(err) {
		return err
	}
	data.API = found.APIVersion
	for _, scope := range []string{"tenant", "project:" + v.session.token.Project} {
		b, err := v.budget(scope)
		if unknown(err) {
			return nil
		}
		if err != nil {
			return err
		}
		data.Budgets = append(data.Budgets, b)
	}
	return nil
}
