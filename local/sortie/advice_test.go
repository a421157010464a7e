package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestAdviceOfTheDemoWorks follows what "make run" prints at its end: it starts a server on the
// folder of the demo, opens the page of the run, and runs the other commands.
func TestAdviceOfTheDemoWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := start(t, dir, "demo")
	if code := demo.exit(t); code != 0 {
		t.Fatalf("got exit code %d, want 0", code)
	}
	_, text, _ := strings.Cut(demo.stdout.String(), "\nLook at the run")
	steps := regexp.MustCompile(`(?m)^  (\S.*)$`).FindAllStringSubmatch(text, -1)
	if len(steps) < 5 {
		t.Fatalf("got the advice %q, want a server, a page and three commands", text)
	}
	program, serve, _ := strings.Cut(steps[0][1], " dev ")
	server := start(t, dir, append([]string{"dev", "--addr", "127.0.0.1:0"}, strings.Fields(serve)...)...)
	ticket := strings.Fields(server.stdout.next(t, "/console/ticket"))[1]
	address, _, _ := strings.Cut(ticket, "/console")
	page := strings.Replace(steps[1][1], "http://127.0.0.1:8080", address, 1)
	if status, text := signedIn(t, ticket).do(t, http.MethodGet, page, ""); status != http.StatusOK || !strings.Contains(text, "Completed") {
		t.Errorf("%s: got %d, want the page of the run", page, status)
	}
	for _, step := range steps[2:] {
		args, ok := strings.CutPrefix(step[1], program+" ")
		if !ok {
			t.Errorf("got the command %q, want one of %s", step[1], program)
		}
		command := startWith(t, dir, []string{"SORTIE_URL=" + address}, strings.Fields(args)...)
		if code := command.exit(t); code != 0 {
			t.Errorf("%s: got %d and %s, want 0", step[1], code, command.stderr)
		}
	}
	server.signal(t, os.Interrupt)
	if code := server.exit(t); code != 0 {
		t.Errorf("after Ctrl-C: got exit code %d, want 0", code)
	}
}

// browser is a client with cookies.
type browser struct{ http.Client }

// signedIn returns a browser that has pressed the button of the page of a ticket.
func signedIn(t *testing.T, ticket string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{http.Client{Jar: jar}}
	_, page := b.do(t, http.MethodGet, ticket, "")
	form := url.Values{}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	address, _, _ := strings.Cut(ticket, "?")
	if status, text := b.do(t, http.MethodPost, address, form.Encode()); status != http.StatusOK {
		t.Fatalf("the ticket: got %d %s, want the overview", status, text)
	}
	return b
}

// do returns the status and the body of the answer after redirects.
func (b *browser) do(t *testing.T, method, address, form string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
