package suite

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func consolePages() []Test {
	return []Test{{Name: "a browser signs in to the console and looks at a run", Requires: []Capability{AnySource}, Run: consoleShowsARun}}
}

// formToken matches the token of a form.
var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

// visitor is a browser without scripts.
type visitor struct {
	*Case
	http *http.Client
	form string
}

// send sends a request and requires the status of the last page.
func (v *visitor) send(method, path string, fields url.Values, status int) string {
	v.T.Helper()
	body := io.Reader(nil)
	if fields != nil {
		fields.Set("form", v.form)
		body = strings.NewReader(fields.Encode())
	}
	r, err := http.NewRequestWithContext(v.T.Context(), method, v.URL+path, body)
	if err != nil {
		v.T.Fatal(err)
	}
	if fields != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	}
	r.Header.Set("Accept", "text/html")
	response, err := v.http.Do(r)
	if err != nil {
		v.T.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		v.T.Fatalf("%s %s: got %d %.2000s, %v, want %d", method, path, response.StatusCode, text, err, status)
	}
	if found := formToken.FindSubmatch(text); found != nil {
		v.form = html.UnescapeString(string(found[1]))
	}
	return string(text)
}

// ticket returns the path of a page that signs in once. It is not an operation of the API.
func (v *visitor) ticket() string {
	v.T.Helper()
	r, err := http.NewRequestWithContext(v.T.Context(), http.MethodPost, v.URL+"/console/tickets", nil)
	if err != nil {
		v.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+v.Token)
	response, err := v.http.Do(r)
	if err != nil {
		v.T.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated {
		v.T.Fatalf("got %d %s, %v, want a ticket", response.StatusCode, text, err)
	}
	return outside.Decode[contract.ConsoleTicket](v.T, text).Path
}

// consoleShowsARun signs in with the client token and with a ticket, reads pages, cancels a run
// that has ended, and signs out.
func consoleShowsARun(c *Case) {
	task := c.StartShort("one")
	c.End(task)
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.T.Fatal(err)
	}
	transport, err := outside.Browser(c.URL)
	if err != nil {
		c.T.Fatal(err)
	}
	v := &visitor{Case: c, http: &http.Client{Jar: jar, Transport: transport}}
	if text := v.send(http.MethodGet, "/console/runs", nil, http.StatusOK); !strings.Contains(text, "Sign in to Sortie") {
		c.T.Fatalf("got %.2000s, want the sign-in", text)
	}
	v.send(http.MethodPost, "/console/sign-in", url.Values{"token": {"of-no-client-at-all"}}, http.StatusUnauthorized)
	if text := v.send(http.MethodPost, "/console/sign-in", url.Values{"token": {c.Token}, "next": {"/console/runs/" + task}}, http.StatusOK); !strings.Contains(text, task) || !strings.Contains(text, "Completed") {
		c.T.Errorf("got %.2000s, want the page of the run", text)
	}
	if text := v.send(http.MethodGet, "/console/runs?kind=export", nil, http.StatusOK); !strings.Contains(text, "/console/static") && !strings.Contains(text, "static/style.css") {
		c.T.Errorf("got %.2000s, want the list of runs", text)
	}
	v.send(http.MethodGet, "/console/json/v1/runs/"+task, nil, http.StatusOK)
	if text := v.send(http.MethodPost, "/console/runs/"+task+"/cancel", url.Values{}, http.StatusOK); !strings.Contains(text, "had already ended") {
		c.T.Errorf("got %.2000s, want that the cancel is too late", text)
	}
	v.send(http.MethodPost, "/console/sign-out", url.Values{}, http.StatusOK)
	if text := v.send(http.MethodGet, "/console/runs", nil, http.StatusOK); !strings.Contains(text, "Sign in to Sortie") {
		c.T.Errorf("got %.2000s after the sign-out, want the sign-in", text)
	}
	path := v.ticket()
	_, ticket, _ := strings.Cut(path, "ticket=")
	v.send(http.MethodGet, path, nil, http.StatusOK)
	v.send(http.MethodPost, "/console/ticket", url.Values{"ticket": {ticket}}, http.StatusOK)
	v.send(http.MethodGet, path, nil, http.StatusGone)
	v.send(http.MethodPost, "/console/sign-out", url.Values{}, http.StatusOK)
}
