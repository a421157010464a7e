package console

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// problemData is the content of the page for an error.
type problemData struct {
	Status        int
	Title, Detail string
	Code, Field   string
	CorrelationID string
}

// begin returns the visit of a request. The fault is Unauthenticated without a session.
func (c *console) begin(r *http.Request) (*page.Visit, error) {
	opened, err := c.session(r)
	if err != nil {
		return nil, err
	}
	httpkit.Identify(r.Context(), opened.Identity())
	return &page.Visit{Config: &c.Config, Request: r, Session: opened}, nil
}

// page serves a page.
func (c *console) page(p page.Page, w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	if p.Scope != "" {
		if err := v.Session.Identity().Need(p.Scope, ""); err != nil {
			return err
		}
	}
	shown, err := p.Show(v)
	if to, ok := errors.AsType[page.SeeOther](err); ok {
		return redirect(w, page.Prefix+string(to))
	}
	if err != nil {
		return err
	}
	return c.renderView(v, w, p, shown)
}

// renderView writes a page for its reader.
func (c *console) renderView(v *page.Visit, w http.ResponseWriter, p page.Page, shown page.View) error {
	l := c.layout(v)
	l.Live, l.RunID, l.Ended = p.Live && v.May(access.EventsRead), shown.RunID, shown.Ended
	l.Title, l.Page, l.JSON, l.Command = shown.Title, p.Name, shown.JSON, shown.Command
	for i := range l.Nav {
		first, _, _ := strings.Cut(p.Path, "/")
		l.Nav[i].Current = l.Nav[i].Path == first
	}
	return c.render(w, cmp.Or(shown.Status, http.StatusOK), l, shown.Content)
}

// layout returns the common data of a page.
func (c *console) layout(v *page.Visit) *ui.Layout {
	token := v.Session.Token
	l := &ui.Layout{
		Root: page.RootOf(v.Request), Form: session.FormToken(v.Request), Now: v.Now(), Permits: v.May,
		Here:   strings.TrimPrefix(v.Request.URL.RequestURI(), page.Prefix),
		Reader: &ui.Reader{Name: token.Name, Subject: token.Subject(), Tenant: token.Tenant, Project: token.Project, Until: v.Session.Until},
	}
	if done := v.Request.URL.Query().Get("done"); done != "" {
		l.Done = doneTexts[done]
	}
	for _, p := range pages {
		if p.Label != "" && (p.Scope == "" || v.May(p.Scope)) {
			l.Nav = append(l.Nav, ui.NavItem{Label: p.Label, Path: p.Path})
		}
	}
	return l
}

// act carries out an action and redirects to its result.
func (c *console) act(a page.Action, w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	if err := v.Session.Identity().Need(a.Scope, ""); err != nil {
		return err
	}
	if a.Show != nil {
		name, shown, err := a.Show(v)
		if to, ok := errors.AsType[page.SeeOther](err); ok {
			return redirect(w, page.Prefix+string(to))
		}
		if err != nil {
			return err
		}
		return c.renderView(v, w, page.Page{Name: name, Path: a.Path}, shown)
	}
	next, err := a.Do(v)
	if err != nil {
		return err
	}
	return redirect(w, page.Prefix+next)
}

// render writes a page.
func (c *console) render(w http.ResponseWriter, status int, l *ui.Layout, content ui.Markup) error {
	var text bytes.Buffer
	if l.Now.IsZero() {
		l.Now = c.Clock.Now().UTC()
	}
	if err := l.Document(content(l)).Render(&text); err != nil {
		return fmt.Errorf("cannot render the page %s: %w", l.Title, err)
	}
	return httpkit.WriteBytes(w, status, "text/html; charset=utf-8", text.Bytes())
}

// fail writes the page for an error. A reader who is not signed in goes to the sign-in.
func (c *console) fail(w http.ResponseWriter, r *http.Request, p *httpkit.Problem) {
	protect(w.Header())
	if p.Body.Status == http.StatusUnauthorized {
		next := ""
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next = "?" + url.Values{"next": {r.URL.RequestURI()}}.Encode()
		}
		_ = redirect(w, page.PathSignIn+next) // it cannot fail
		return
	}
	for _, name := range []string{"Retry-After", "Allow"} {
		if value := p.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	l := &ui.Layout{Root: page.RootOf(r)}
	if v, err := c.begin(r); err == nil {
		l = c.layout(v)
	}
	l.Title = cmp.Or(p.Body.Title, http.StatusText(p.Body.Status))
	data := problemData{
		Status: p.Body.Status, Title: l.Title, Detail: p.Body.Detail, Code: p.Body.Code, Field: p.Body.Field,
		CorrelationID: httpkit.CorrelationID(r.Context()),
	}
	if fault.Code(p.Body.Code) == fault.NotFound {
		l.Title = "Not found"
	}
	if err := c.render(w, p.Body.Status, l, data.content); err != nil {
		httpkit.Log(r.Context()).ErrorContext(r.Context(), "cannot render the page for an error", "error", err.Error())
		w.WriteHeader(http.StatusInternalServerError)
	}
}
