package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// app is the Machines API's answer about an app.
type app struct {
	status       int
	organisation string
	err          error
}

// fly checks that the token can access each app for machines.
func (e *exam) fly(ctx context.Context) []Finding {
	document, is := e.documents["fly"].(secrets.Fly)
	apps := map[string]app{}
	organisation := "" // the organisation of an accessible app
	for _, name := range e.plan.FlyApps {
		if is {
			apps[name] = e.app(ctx, name, document.Token)
			organisation = cmp.Or(organisation, apps[name].organisation)
		}
	}
	var found []Finding
	for _, name := range e.plan.FlyApps {
		check := "fly " + name
		if !is {
			found = append(found, unknown(check, "not checked: it needs the secret fly", "do what its line says"))
			continue
		}
		found = append(found, e.appFinding(check, name, apps[name], organisation))
	}
	return found
}

func (e *exam) appFinding(check, name string, a app, organisation string) Finding {
	token := e.flyToken(cmp.Or(organisation, "personal"))
	switch {
	case a.err != nil:
		return unknown(check, "not checked: "+reason(a.err), "repeat "+e.again())
	case a.status == http.StatusOK:
		return ok(check, "an app of the organisation %s", a.organisation)
	case a.status == http.StatusUnauthorized:
		return wrong(check, "Fly does not accept the token of the secret fly", token)
	case a.status == http.StatusForbidden && organisation != "":
		return wrong(check, "the token reaches other apps and not this one: it is one of a single app, or the app is in another organisation than "+organisation,
			token+"; if the app is not yours, choose another name in "+e.entry("flyApps")+", because names are global")
	case a.status == http.StatusForbidden:
		return wrong(check, "the token does not reach the app: it is one of another app, or another organisation has the name",
			token+"; if the app is not yours, choose another name in "+e.entry("flyApps")+", because names are global")
	case a.status == http.StatusNotFound:
		return missing(check, "Fly has no such app", "fly apps create "+name+" --org "+cmp.Or(organisation, "personal")+
			"; if the name is taken, choose another in "+e.entry("flyApps")+", because names are global")
	}
	return unknown(check, fmt.Sprintf("not checked: Fly answers with the status %d", a.status), "repeat "+e.again())
}

// app reads an app from the Machines API.
func (e *exam) app(ctx context.Context, name, token string) app {
	address := strings.TrimSuffix(cmp.Or(e.plan.FlyURL, fly.DefaultBaseURL), "/") + "/v1/apps/" + url.PathEscape(name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return app{err: err}
	}
	request.Header.Set("Authorization", fly.Authorization(token))
	answer, err := e.HTTP.Do(request)
	if err != nil {
		return app{err: err}
	}
	defer answer.Body.Close()
	var body struct{ Organization struct{ Slug string } }
	if answer.StatusCode == http.StatusOK {
		err = json.NewDecoder(io.LimitReader(answer.Body, answerLimit)).Decode(&body)
	}
	return app{answer.StatusCode, body.Organization.Slug, err}
}
