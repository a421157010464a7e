package page

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

// Page is an address of the console.
type Page struct {
	// Name is the value of the attribute data-page of its body.
	Name string
	// Path is below Prefix: "runs/{run_id}".
	Path string
	// Label is its text in the navigation; empty means that the navigation omits it.
	Label string
	// Query lists its query parameters.
	Query []string
	// Scope is the scope without which the page shows nothing.
	Scope access.Scope
	// Show reads what the page shows.
	Show func(v *Visit) (View, error)
	// Live: the page changes while it is open. README.md says what its content needs.
	Live bool
	// Actions are the forms of the page.
	Actions []Action
}

// Action is a form of a page: a POST request to Path. Do returns the path of the page that shows
// the result, below Prefix. For a result that no page has an address for, Show replaces Do: it
// returns the name of a page and what it shows.
type Action struct {
	Path  string
	Scope access.Scope
	Do    func(v *Visit) (next string, err error)
	Show  func(v *Visit) (name string, shown View, err error)
}

// View is what a page shows.
type View struct {
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
	Content ui.Markup
	// Status is the status of the response; 0 means 200.
	Status int
}

// Visit is a request of a reader who is signed in.
type Visit struct {
	Config  *Config
	Request *http.Request
	Session session.Session
}

// May reports whether the reader has a scope. Pages omit actions that the reader may not do.
func (v *Visit) May(s access.Scope) bool { return v.Session.Identity().May(s) }

// Now returns the time of the request.
func (v *Visit) Now() time.Time { return v.Config.Clock.Now().UTC() }

// RootOf returns the relative path from the address of a request to the console.
func RootOf(r *http.Request) string {
	below := strings.TrimPrefix(r.URL.EscapedPath(), Prefix)
	return cmp.Or(strings.Repeat("../", strings.Count(below, "/")), "./")
}

// Back returns the page from which a form was sent, or fallback, with a value of done.
func (v *Visit) Back(fallback, done string) string {
	from, err := url.Parse(LocalPath(Prefix + cmp.Or(v.Request.PostForm.Get("back"), fallback)))
	if err != nil {
		return fallback
	}
	query := from.Query()
	query.Set("done", done)
	return ui.WithQuery(strings.TrimPrefix(from.EscapedPath(), Prefix), query)
}

// FormKey returns an idempotency key for a form of a page, about a subject.
func (v *Visit) FormKey(subject string) string {
	sum := sha256.Sum256([]byte(session.FormToken(v.Request) + subject + strconv.FormatInt(v.Now().UnixNano(), 36)))
	return "console-" + hex.EncodeToString(sum[:12])
}
