package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/app/setting"
)

const (
	// consoleRuns and consoleJobs are the runs and jobs of the store. BENCH_RUNS sets other runs.
	consoleRuns = 100_000
	consoleJobs = 2_000
	// pageReads is how often each page is read by one client, after a warm-up. pageReaders
	// clients then read it concurrently.
	pageReads   = 60
	pageReaders = 4
	// The goals of a page are printed with the figures and not asserted.
	pageTimeGoal = 60 * time.Millisecond
	pageSizeGoal = 120 << 10
)

// measureConsole measures the pages of the console with a large store.
func measureConsole(ctx context.Context, t *table) error {
	runs, err := strconv.Atoi(cmp.Or(os.Getenv("BENCH_RUNS"), strconv.Itoa(consoleRuns)))
	if err != nil {
		return fmt.Errorf("BENCH_RUNS: %w", err)
	}
	c, addresses, err := startStack("-runner", "goroutine")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	newest, err := fillConsole(ctx, addresses, runs)
	if err != nil {
		return err
	}
	r, err := openConsole(ctx, addresses)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("console, %d runs and %d jobs", runs, consoleJobs)
	assets, err := r.assets(ctx)
	if err != nil {
		return err
	}
	t.add(name, "style and scripts of all pages, once", "%.1f KiB", float64(assets)/1024)
	for _, path := range []string{
		"overview", "overview?since=1h", "runs", "runs?state=Failed", "runs?jobId=job-00001", "runs/" + newest, "jobs", "jobs/job-00001", "jobs/job-00001/document",
		"jobs/job-00001/calendar", "pools", "pools/default", "events", "events/1", "webhooks", "inference", "about", "search?q=job-000",
	} {
		p, err := r.measure(ctx, c, path)
		if err != nil {
			return err
		}
		t.add(name, "/"+strings.Replace(path, newest, "RUN", 1), "p50 / p95 %.1f / %.1f ms, CPU %.1f ms, %.1f KiB, %d objects allocated, %.0f pages/s with %d readers",
			millis(percentile(p.took, 0.5)), millis(percentile(p.took, 0.95)), millis(p.cpu), float64(p.size)/1024, p.objects, p.rate, pageReaders)
	}
	t.add(name, "goals of a page", "p95 %d ms, %d KiB with style and scripts", pageTimeGoal.Milliseconds(), pageSizeGoal>>10)
	return nil
}

// fillConsole stores jobs, and runs that have ended. A tenth of the runs are of jobs. It returns
// the last run.
func fillConsole(ctx context.Context, at stack.Addresses, runs int) (newest string, err error) {
	token, err := stack.ReadToken(at.TokenFile) // the jobs are programs of the host
	if err != nil {
		return "", err
	}
	errs := make([]error, consoleJobs)
	each(consoleJobs, inFlight, func(i int) {
		id := fmt.Sprintf("job-%05d", i)
		body := fmt.Sprintf(`{"id":%q,"image":%q,"completion":"callback","schedule":"0 3 1 1 *"}`, id, service.DefaultImage)
		errs[i] = requestAs(ctx, token, http.MethodPut, at.URL+"/v1/jobs/"+id, body, &struct{}{})
	})
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	errs = make([]error, runs)
	each(runs, inFlight, func(i int) {
		if i%10 != 0 {
			_, errs[i] = export(ctx, at.URL)
			return
		}
		path := fmt.Sprintf("/v1/jobs/job-%05d/runs", i/10%consoleJobs)
		errs[i] = requestAs(ctx, token, http.MethodPost, at.URL+path, "{}", &struct{}{})
	})
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	last, err := export(ctx, at.URL)
	for err == nil {
		var left int
		if left, err = underWay(ctx, at.URL); left == 0 {
			break
		}
		pause(time.Second)
	}
	return last.TaskID, err
}

// underWay returns the number of runs that have not ended, at most one for each state.
func underWay(ctx context.Context, url string) (n int, err error) {
	for _, state := range []string{"Pending", "ContainerCreating", "Running", "Terminating"} {
		var list struct{ Tasks []json.RawMessage }
		if err := request(ctx, http.MethodGet, url+"/v1/runs?limit=1&state="+state, "", &list); err != nil {
			return 0, err
		}
		n += len(list.Tasks)
	}
	return n, nil
}

// consoleReader is a browser that is signed in.
type consoleReader struct {
	client *http.Client
	url    string
}

var (
	formToken = regexp.MustCompile(`name="form" value="([^"]*)"`)
	assetPath = regexp.MustCompile(`(?:href|src)="([^"]*static/[^"]*\.(?:css|js)[^"]*)"`)
)

// openConsole signs in with the token of the data folder.
func openConsole(ctx context.Context, at stack.Addresses) (*consoleReader, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	token, err := stack.ReadToken(at.TokenFile)
	if err != nil {
		return nil, err
	}
	r := &consoleReader{client: &http.Client{Jar: jar, Transport: client.Transport}, url: at.URL}
	page, err := r.read(ctx, "sign-in")
	if err != nil {
		return nil, err
	}
	found := formToken.FindSubmatch(page)
	if found == nil {
		return nil, errors.New("the page to sign in has no form")
	}
	form := url.Values{"form": {string(found[1])}, "token": {token}}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL+"/console/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	post.Header.Set("Origin", at.URL)
	_, err = r.send(post)
	return r, err
}

// send sends a request and returns the bytes of the body that the wire carries. Only style and
// scripts are compressed.
func (r *consoleReader) send(request *http.Request) ([]byte, error) {
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	return body, err
}

func (r *consoleReader) read(ctx context.Context, path string) ([]byte, error) {
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/console/"+path, nil)
	if err != nil {
		return nil, err
	}
	return r.send(get)
}

// assets returns the bytes of the style and the scripts of a page, as the wire carries them.
func (r *consoleReader) assets(ctx context.Context) (size int, err error) {
	page, err := r.read(ctx, "overview")
	if err != nil {
		return 0, err
	}
	for _, found := range assetPath.FindAllSubmatch(page, -1) {
		body, err := r.read(ctx, strings.TrimPrefix(string(found[1]), "./"))
		if err != nil {
			return 0, err
		}
		size += len(body)
	}
	return size, nil
}

// pageCost is the cost of one page.
type pageCost struct {
	took []time.Duration
	size int
	// cpu and objects are the processor time and the allocations of the server for one page. rate
	// is the number of pages in a second.
	cpu     time.Duration
	objects int64
	rate    float64
}

// measure reads a page with one client, and then with several.
func (r *consoleReader) measure(ctx context.Context, c *child, path string) (p pageCost, err error) {
	for range pageReads / 6 { // warm-up
		if _, err := r.read(ctx, path); err != nil {
			return p, err
		}
	}
	objects, cpu, err := c.spent()
	if err != nil {
		return p, err
	}
	for range pageReads {
		startedAt := time.Now()
		page, err := r.read(ctx, path)
		if err != nil {
			return p, err
		}
		p.took, p.size = append(p.took, time.Since(startedAt)), len(page)
	}
	objectsThen, cpuThen, err := c.spent()
	if err != nil {
		return p, err
	}
	p.objects, p.cpu = (objectsThen-objects)/pageReads, (cpuThen-cpu)/pageReads
	errs := make([]error, pageReads)
	startedAt := time.Now()
	each(pageReads, pageReaders, func(i int) { _, errs[i] = r.read(ctx, path) })
	p.rate = pageReads / time.Since(startedAt).Seconds()
	return p, errors.Join(errs...)
}

// spent returns the number of objects that the stack has allocated so far, and its processor time.
func (c *child) spent() (objects int64, cpu time.Duration, err error) {
	if err := c.command.Process.Signal(syscall.SIGUSR2); err != nil {
		return 0, 0, err
	}
	text, err := c.line()
	if err != nil {
		return 0, 0, err
	}
	if objects, err = strconv.ParseInt(text, 10, 64); err != nil {
		return 0, 0, err
	}
	used, err := usageOf(c.command.Process.Pid)
	return objects, used.cpu, err
}
