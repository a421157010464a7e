//go:build localstack

package cost_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/cost"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// pages signs in to the console and counts what each page reads.
func (d *deployment) pages() []cost.Page {
	d.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.Fatal(err)
	}
	transport, err := outside.Browser(d.client.URL)
	if err != nil {
		d.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: transport}
	form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(d.page(browser, http.MethodGet, "sign-in", nil))
	if form == nil {
		d.Fatal("the page to sign in has no form")
	}
	d.page(browser, http.MethodPost, "sign-in", url.Values{"form": {html.UnescapeString(form[1])}, "token": {d.client.Token}})
	listed := outside.Get[contract.TaskList](d.client, "/v1/runs?limit=1")
	run := listed.Tasks[0].RunID
	d.settle()
	var pages []cost.Page
	for _, path := range []string{"overview", "runs", "runs/" + run, "jobs", "pools", "pools/default", "events", "events/1", "webhooks", "inference", "inference/usage", "about", "search?q=export"} {
		d.proxy.Take()
		d.page(browser, http.MethodGet, path, nil)
		counted, _ := d.proxy.Take()
		p := cost.Page{Path: strings.Replace(path, run, "RUN", 1)}
		for function, used := range counted {
			d.Logf("%s: of %s: %v", path, function, used)
			p.ReadUnits += used[cost.ReadUnits]
		}
		pages = append(pages, p)
	}
	return pages
}

// page reads a page of the console, or sends a form to it.
func (d *deployment) page(browser *http.Client, method, path string, form url.Values) string {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), method, d.client.URL+"/console/"+path, strings.NewReader(form.Encode()))
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	response, err := browser.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		d.Fatalf("%s: got %d %.2000s, %v, want 200", path, response.StatusCode, text, err)
	}
	return string(text)
}
