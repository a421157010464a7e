package console

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"maragu.dev/gomponents"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// page is an address of the console.
type page struct {
	// name is the value of the attribute data-page of its body.
	name string
	// path is below Prefix: "runs/{run_id}".
	path string
	// label is its text in the navigation; empty means that the navigation omits it.
	label string
	// query lists its query parameters.
	query []string
	// scope is the scope without which the page shows nothing.
	scope access.Scope
	// show reads what the page shows.
	show func(v *visit) (view, error)
	// live: the page changes while it is open. README.md says what its content needs.
	live bool
	// actions are the forms of the page.
	actions []action
}

// action is a form of a page: a POST request to path. do returns the path of the page that shows
// the result, below Prefix. For a result that no page has an address for, show replaces do: it
// returns the name of a page and what it shows.
type action struct {
	path  string
	scope access.Scope
	do    func(v *visit) (next string, err error)
	show  func(v *visit) (name string, shown view, err error)
}

// view is what a page shows.
type view struct {
	// Title is the title of the page.
	Title string
	// JSON is the path and the query of the same content in the API.
	JSON string
	// Command is the command that prints the same.
	Command string
	// RunID is the run that the page shows; empty for other pages. Ended: it has ended.
	RunID string
	Ended bool
	// Content returns the content as markup. Files with names in _html.go have such functions.
	Content markup
	// Status is the status of the response; 0 means 200.
	Status int
}

// visit is a request of a reader who is signed in.
type visit struct {
	c       *console
	r       *http.Request
	session session
}

// may reports whether the reader has a scope. Pages omit actions that the reader may not do.
func (v *visit) may(s access.Scope) bool { return v.session.identity().May(s) }

// now returns the time of the request.
func (v *visit) now() time.Time { return v.c.Clock.Now().UTC() }

// markup returns the content of a page.
type markup func(*layout) gomponents.Node

// layout is what all pages show, and what their markup needs.
type layout struct {
	Title string
	// Root is the relative path of the console: "" or "../" for each further segment.
	Root string
	// Form is the token that each form needs.
	Form string
	// Page is the name of the page. Here is its path and query below the console.
	Page, Here string
	Nav        []navItem
	// Reader is the reader; nil if not signed in.
	Reader *reader
	// JSON is the path of the API's representation, and Command the equivalent command.
	JSON, Command string
	// Live: the page changes while it is open, with the run RunID, or with any. Ended: the run
	// has ended.
	Live, Ended bool
	RunID       string
	// Done names the action that led to this page; empty without one.
	Done string
	Now  time.Time

	may func(access.Scope) bool
}

type navItem struct {
	Label, Path string
	Current     bool
}

type reader struct {
	Name, Subject, Tenant, Project string
	Until                          time.Time
}

// rootOf returns the relative path from the address of a request to the console.
func rootOf(r *http.Request) string {
	below := strings.TrimPrefix(r.URL.EscapedPath(), Prefix)
	return cmp.Or(strings.Repeat("../", strings.Count(below, "/")), "./")
}

// begin returns the visit of a request. The fault is Unauthenticated without a session.
func (c *console) begin(r *http.Request) (*visit, error) {
	opened, err := c.session(r)
	if err != nil {
		return nil, err
	}
	httpkit.Identify(r.Context(), opened.identity())
	return &visit{c: c, r: r, session: opened}, nil
}

// page serves a page.
func (c *console) page(p page, w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	if p.scope != "" {
		if err := v.session.identity().Need(p.scope, ""); err != nil {
			return err
		}
	}
	shown, err := p.show(v)
	if to, ok := errors.AsType[seeOther](err); ok {
		return redirect(w, Prefix+string(to))
	}
	if err != nil {
		return err
	}
	return c.renderView(v, w, p, shown)
}

// renderView writes a page for its reader.
func (c *console) renderView(v *visit, w http.ResponseWriter, p page, shown view) error {
	l := c.layout(v)
	l.Live, l.RunID, l.Ended = p.live && v.may(access.EventsRead), shown.RunID, shown.Ended
	l.Title, l.Page, l.JSON, l.Command = shown.Title, p.name, shown.JSON, shown.Command
	for i := range l.Nav {
		first, _, _ := strings.Cut(p.path, "/")
		l.Nav[i].Current = l.Nav[i].Path == first
	}
	return c.render(w, cmp.Or(shown.Status, http.StatusOK), l, shown.Content)
}

// layout returns the common data of a page.
func (c *console) layout(v *visit) *layout {
	token := v.session.token
	l := &layout{
		Root: rootOf(v.r), Form: formToken(v.r), Now: v.now(), may: v.may,
		Here:   strings.TrimPrefix(v.r.URL.RequestURI(), Prefix),
		Reader: &reader{Name: token.Name, Subject: token.Subject(), Tenant: token.Tenant, Project: token.Project, Until: v.session.until},
	}
	if done := v.r.URL.Query().Get("done"); done != "" {
		l.Done = doneTexts[done]
	}
	for _, p := range pages {
		if p.label != "" && (p.scope == "" || v.may(p.scope)) {
			l.Nav = append(l.Nav, navItem{Label: p.label, Path: p.path})
		}
	}
	return l
}

// act carries out an action and redirects to its result.
func (c *console) act(a action, w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	if err := v.session.identity().Need(a.scope, ""); err != nil {
		return err
	}
	if a.show != nil {
		name, shown, err := a.show(v)
		if to, ok := errors.AsType[seeOther](err); ok {
			return redirect(w, Prefix+string(to))
		}
		if err != nil {
			return err
		}
		return c.renderView(v, w, page{name: name, path: a.path}, shown)
	}
	next, err := a.do(v)
	if err != nil {
		return err
	}
	return redirect(w, Prefix+next)
}

// back returns the page from which a form was sent, or fallback, with a value of done.
func (v *visit) back(fallback, done string) string {
	from, err := url.Parse(localPath(Prefix + cmp.Or(v.r.PostForm.Get("back"), fallback)))
	if err != nil {
		return fallback
	}
	query := from.Query()
	query.Set("done", done)
	return address(strings.TrimPrefix(from.EscapedPath(), Prefix), query)
}

// formKey returns an idempotency key for a form of a page, about a subject.
func (v *visit) formKey(subject string) string {
	sum := sha256.Sum256([]byte(formToken(v.r) + subject + strconv.FormatInt(v.now().UnixNano(), 36)))
	return "console-" + hex.EncodeToString(sum[:12])
}

// render writes a page.
func (c *console) render(w http.ResponseWriter, status int, l *layout, content markup) error {
	var text bytes.Buffer
	if l.Now.IsZero() {
		l.Now = c.Clock.Now().UTC()
	}
	if err := l.document(content(l)).Render(&text); err != nil {
		return fmt.Errorf("cannot render the page %s: %w", l.Title, err)
	}
	return httpkit.WriteBytes(w, status, "text/html; charset=utf-8", text.Bytes())
}

// problemData is the content of the page for an error.
type problemData struct {
	Status        int
	Title, Detail string
	Code, Field   string
	CorrelationID string
}

// fail writes the page for an error. A reader who is not signed in goes to the sign-in.
func (c *console) fail(w http.ResponseWriter, r *http.Request, p *httpkit.Problem) {
	protect(w.Header())
	if p.Body.Status == http.StatusUnauthorized {
		next := ""
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next = "?" + url.Values{"next": {r.URL.RequestURI()}}.Encode()
		}
		_ = redirect(w, pathSignIn+next) // it cannot fail
		return
	}
	for _, name := range []string{"Retry-After", "Allow"} {
		if value := p.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	l := &layout{Root: rootOf(r)}
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
