//go:build localstack

package cost_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/cost"
)

// report matches the line with which LocalStack's plugin ends the log of an invocation. The
// first line names the function. Functions with SystemLogLevel WARN do not have Lambda's own
// lines.
var (
	report = regexp.MustCompile(`(?m)^REPORT RequestId: .*Duration: ([0-9.]+) ms`)
	own    = regexp.MustCompile(`(?m)^(START|END|REPORT) RequestId: .*\n`)
	metric = regexp.MustCompile(`"Name":"([A-Za-z0-9]+)","Unit"`)
	sent   = regexp.MustCompile(`"msg":"request",.*"bytes":([0-9]+)`)
)

// probe is the correlation id of the calls with which the sweep tests whether workers can reach
// this Sortie. They belong to the sweep and not to a run.
const probe = "00000000-0000-4000-8000-00000000beef"

// marked returns the address of a proxy in front of the API. The proxy adds this id to each
// call, and the called function logs it.
func (d *deployment) marked() string {
	d.Helper()
	api, err := url.Parse(d.client.URL)
	if err != nil {
		d.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(api)
		r.Out.Header.Set("X-Correlation-Id", probe)
	}})
	d.Cleanup(server.Close)
	return server.URL
}

// logged returns the log of a function since started, one text per invocation. Calls with the
// id probe are listed as the function "probe".
func (d *deployment) logged(started moment, function string) []string {
	d.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil {
		d.Fatal(err)
	}
	var own []string
	for block := range strings.SplitSeq(string(text[started.log:]), "/aws/lambda/") {
		name, body, _ := strings.Cut(block, " ")
		if strings.Contains(body, `"correlation_id":"`+probe+`"`) {
			name = d.name + "probe"
		}
		if name == d.name+function {
			own = append(own, body)
		}
	}
	return own
}

// invocations returns the usage in a function's log.
func (d *deployment) invocations(started moment, function string) cost.Usage {
	d.Helper()
	used := cost.Usage{}
	for _, body := range d.logged(started, function) {
		match := report.FindStringSubmatch(body)
		if match == nil {
			continue
		}
		ms, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			d.Fatal(err)
		}
		if bytes := sent.FindStringSubmatch(body); bytes != nil {
			n, err := strconv.ParseFloat(bytes[1], 64)
			if err != nil {
				d.Fatal(err)
			}
			used[cost.OutGB] += n / 1e9
		}
		used[cost.LambdaRequests]++
		used[cost.LambdaGBs] += ms / 1000 * d.memory[function]
		body = own.ReplaceAllString(body, "")
		used[cost.LogGB] += float64(len(body)+26*strings.Count(body, "\n")) / 1e9 // CloudWatch counts 26 extra bytes per line
	}
	return used
}

// metrics counts the custom metrics in a function's log.
func (d *deployment) metrics(started moment, function string) float64 {
	d.Helper()
	names := map[string]bool{}
	for _, body := range d.logged(started, function) {
		for _, match := range metric.FindAllStringSubmatch(body, -1) {
			names[match[1]] = true
		}
	}
	return float64(len(names))
}
