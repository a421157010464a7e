package stack_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// pathOf returns the path of a resource of the API.
func pathOf(t *testing.T, made template.Template, id string) string {
	t.Helper()
	r := made.Resources[id]
	if r == nil {
		return ""
	}
	parent := strings.Trim(r.Text("ParentId"), "${}")
	if strings.HasSuffix(parent, ".RootResourceId") {
		parent = ""
	}
	return pathOf(t, made, parent) + "/" + r.Text("PathPart")
}

// methods maps the methods of the template to their functions. ANY applies to the methods of a
// path that have no entry.
func methods(t *testing.T, made template.Template) map[string]string {
	t.Helper()
	behind := map[string]string{}
	for _, m := range made.Of("ApiGateway::Method") {
		uri := m.Text("Integration", "Uri")
		_, function, _ := strings.Cut(uri, "/functions/${")
		function, _, _ = strings.Cut(function, ".Arn}")
		path := cmp.Or(pathOf(t, made, strings.Trim(m.Text("ResourceId"), "${}")), "/")
		behind[m.Text("HttpMethod")+" "+path] = strings.ToLower(strings.TrimRight(function, "0123456789ABCDEF"))
	}
	return behind
}

// TestAPIMatchesOpenAPI compares openapi.yaml with the methods of the template.
func TestAPIMatchesOpenAPI(t *testing.T) {
	t.Parallel()
	document, err := apicheck.Load(contract.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, op := range document.Operations() {
		described[op.Method+" "+op.Path] = true
		if op.Method == http.MethodGet {
			described[http.MethodHead+" "+op.Path] = true
		}
		described["ANY "+op.Path] = true
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, "ANY"} {
		delete(described, method+" /v1/events/ws") // a REST API has no WebSocket: see TestWebSocketIsInItsAPI
	}
	for _, of := range []string{"/", "/console", "/console/{proxy+}"} { // pages, which are no operations
		described["ANY "+of] = true
	}
	behind := methods(t, deployed(t))
	served, used := map[string]bool{}, map[string]bool{}
	function := func(operation string) string {
		_, path, _ := strings.Cut(operation, " ")
		for _, method := range []string{operation, "ANY " + path} {
			if used[method] = true; behind[method] != "" {
				return behind[method]
			}
		}
		for at := len(path); at > 0; at = strings.LastIndexByte(path[:at], '/') {
			method := "ANY " + path[:at] + "/{proxy+}"
			if used[method] = true; behind[method] != "" {
				return behind[method]
			}
		}
		return ""
	}
	for operation := range described {
		if function(operation) != "" {
			served[operation] = true
		}
	}
	for method := range behind {
		if !used[method] {
			t.Errorf("%s: got a method that serves no operation of openapi.yaml", method)
		}
	}
	if diff := gocmp.Diff(described, served); diff != "" {
		t.Errorf("openapi.yaml (-) and the template (+):\n%s", diff)
	}
	for operation, want := range map[string]string{
		"POST /export/{format}": "export", "POST /callback/{task_id}": "callback", "GET /status/{task_id}": "status",
		"GET /download/{task_id}": "registry", "GET /v1/tasks": "tasks",
		"GET /v1/runs": "tasks", "POST /v1/runs": "jobs", "GET /v1/events": "events", "GET /v1/events/stream": "streamreaders", "PATCH /v1/webhooks/{webhook_id}": "webhooks", "POST /v1/artifacts": "registry",
		"ANY /": "console", "GET /console/runs/{run_id}": "console", "POST /console/sign-in": "console",
		"POST /v1/tasks": "inference", "GET /v1/tasks/{task_id}/stream": "inference", "POST /v1/chat/completions": "inference", "GET /v1/sessions/{session_id}": "inference",
	} {
		if got := function(operation); got != want {
			t.Errorf("%s: got function %q, want %s", operation, got, want)
		}
	}
}

func TestDownloadsLogsAndEventsAreStreamed(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{"STREAM": deployed(t), "": synth(t, map[string]any{"stream": false})} {
		found := 0
		for _, m := range made.Of("ApiGateway::Method") {
			uri := m.Text("Integration", "Uri")
			if !slices.ContainsFunc([]string{"${Tasks", "LiveTasks", "${Console", "${Stream", "${Registry", "${Inference"}, func(of string) bool { return strings.Contains(uri, of) }) {
				if m.Text("Integration", "ResponseTransferMode") != "" {
					t.Errorf("%s: got STREAM, want no transfer mode", m.ID)
				}
				continue
			}
			found++
			expect(t, m, name, "Integration", "ResponseTransferMode")
			if streams := strings.HasSuffix(m.Text("Integration", "Uri"), "/response-streaming-invocations"); streams != (name == "STREAM") {
				t.Errorf("%s: got URI %s", m.ID, m.Text("Integration", "Uri"))
			}
		}
		if found == 0 {
			t.Error("got no streamed method")
		}
	}
}

// TestTimeoutsAreShorterThanTheCallers compares the timeouts of functions with those of API
// Gateway and of the schedule.
func TestTimeoutsAreShorterThanTheCallers(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	for _, m := range made.Of("ApiGateway::Method") {
		waits, err := strconv.Atoi(m.Text("Integration", "TimeoutInMillis"))
		if err != nil {
			t.Errorf("%s: got no timeout", m.ID)
		}
		_, id, _ := strings.Cut(m.Text("Integration", "Uri"), "/functions/${")
		id, _, _ = strings.Cut(id, ".Arn}")
		takes, err := strconv.Atoi(made.Resources[id].Text("Timeout"))
		if err != nil || takes*1000 >= waits {
			t.Errorf("%s: got a timeout of %d ms for %s, whose own is %d s", m.ID, waits, id, takes)
		}
	}
	if seconds, err := strconv.Atoi(functionOf(t, made, "sweep").Text("Timeout")); err != nil || seconds >= 60 {
		t.Errorf("sweep: got a timeout of %d s, want less than 60", seconds)
	}
}

func TestAccessLogHasNoClientData(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	for kind, want := range map[string]struct{ setting, group string }{
		"ApiGateway::Stage": {"AccessLogSetting", "LogsAccess"}, "ApiGatewayV2::Stage": {"AccessLogSettings", "LogsSockets"},
	} {
		if len(made.Of(kind)) == 0 {
			t.Errorf("got no %s", kind)
		}
		for _, stage := range made.Of(kind) {
			format, to := stage.Text(want.setting, "Format"), stage.Text(want.setting, "DestinationArn")
			if !json.Valid([]byte(format)) || !strings.HasPrefix(to, "${"+want.group+".Arn}") {
				t.Errorf("got access log %s to %s", format, to)
			}
			// The function logs this id as request_id.
			if !strings.Contains(format, `"functionRequestId":"$context.integration.requestId"`) {
				t.Errorf("got access log %s, want the request's id of the function", format)
			}
			for _, secret := range []string{"header", "querystring", "$context.path\"", "authorizer", "identity"} {
				if strings.Contains(format, secret) {
					t.Errorf("got %s in the access log %s", secret, format)
				}
			}
		}
	}
}

func TestEveryMethodIsThrottled(t *testing.T) {
	t.Parallel()
	made := synth(t, map[string]any{"clientRate": 50, "workerRate": 700})
	stage := made.Of("ApiGateway::Stage")[0]
	rates := map[string]string{}
	for _, one := range stage.At("MethodSettings").([]any) {
		s := &template.Resource{Properties: one.(map[string]any)}
		rates[s.Text("HttpMethod")+" "+s.Text("ResourcePath")] = s.Text("ThrottlingRateLimit") + "/" + s.Text("ThrottlingBurstLimit")
		expect(t, s, "false", "DataTraceEnabled")
	}
	if rates["* /*"] != "50/100" || rates["POST /~1callback~1{task_id}"] != "700/1400" {
		t.Errorf("got rates %v", rates)
	}
	if slices.Contains(sortedKeys(rates), "POST /~1export~1{format}") {
		t.Error("got a rate for a client's method, want the stage's")
	}
}

// TestAPIGatewaySendsProblems checks the error responses of API Gateway itself.
func TestAPIGatewaySendsProblems(t *testing.T) {
	t.Parallel()
	answers := map[string]string{}
	for _, r := range deployed(t).Of("ApiGateway::GatewayResponse") {
		text := r.At("ResponseTemplates").(map[string]any)["application/json"].(string)
		var problem contract.Problem
		if err := json.Unmarshal([]byte(text), &problem); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
		if strconv.Itoa(problem.Status) != r.Text("StatusCode") || problem.Detail == "" || problem.CorrelationID != "$context.requestId" {
			t.Errorf("%s: got %s with %+v", r.ID, r.Text("StatusCode"), problem)
		}
		expect(t, r, "'application/problem+json'", "ResponseParameters", "gatewayresponse.header.Content-Type")
		expect(t, r, "context.requestId", "ResponseParameters", "gatewayresponse.header.X-Request-Id")
		if unknown := problem.Code == "NOT_FOUND"; unknown != strings.Contains(text, `"code":"unknown_url"`) {
			t.Errorf("%s: got %s, want the error of OpenAI's API for an unknown path", r.ID, text)
		}
		checkOpenAI(t, r.ID, text, problem)
		answers[r.Text("ResponseType")] = r.Text("StatusCode") + " " + problem.Code
	}
	for kind, want := range map[string]string{
		"MISSING_AUTHENTICATION_TOKEN": "404 NOT_FOUND", "THROTTLED": "429 THROTTLED", "REQUEST_TOO_LARGE": "413 TOO_LARGE",
		"WAF_FILTERED": "403 FORBIDDEN", "DEFAULT_5XX": "503 UNAVAILABLE", "INTEGRATION_FAILURE": "503 UNAVAILABLE", "DEFAULT_4XX": "400 INVALID_REQUEST",
	} {
		if answers[kind] != want {
			t.Errorf("%s: got %s, want %s", kind, answers[kind], want)
		}
	}
}

// checkOpenAI checks that a client of OpenAI's API can read a response of API Gateway as an error.
func checkOpenAI(t *testing.T, id, text string, p contract.Problem) {
	t.Helper()
	var body openai.Error
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Errorf("%s: %v", id, err)
	}
	types := map[int]string{403: "permission_error", 429: "rate_limit_error", 503: "server_error"}
	if e := body.Error; e.Message != p.Detail || e.Type != cmp.Or(types[p.Status], "invalid_request_error") || e.Code == "" || !strings.Contains(text, `"param":null`) {
		t.Errorf("%s: got %s, want an error of OpenAI's API with the message %q", id, text, p.Detail)
	}
}

// TestOwnLimitOfBodiesComesFirst compares the largest body of a request with the limit of Lambda, whose
// refusal has the form of AWS. A body is base64 in the event, beside its headers of at most 10,240 bytes.
func TestOwnLimitOfBodiesComesFirst(t *testing.T) {
	t.Parallel()
	const payload, headers = 6 * 1024 * 1024, 64 * 1024
	for name, most := range map[string]int{"clients": httpkit.BodyLimit, "inference and workers": httpkit.WorkerBodyLimit} {
		if size := base64.StdEncoding.EncodedLen(most+1) + headers; size > payload {
			t.Errorf("%s: a body of %d bytes makes an event of about %d, want at most %d, so that the function itself refuses it", name, most, size, payload)
		}
	}
}

func TestDomainIsTheOnlyAddress(t *testing.T) {
	t.Parallel()
	made := everything(t)
	expect(t, made.Of("ApiGateway::DomainName")[0], "TLS_1_2", "SecurityPolicy")
	expect(t, made.Of("ApiGateway::RestApi")[0], "true", "DisableExecuteApiEndpoint")
	if url := template.Flat(made.Outputs["URL"].Value); url != "https://sortie.example.org" {
		t.Errorf("got URL %s", url)
	}
	expect(t, functionOf(t, made, "launch"), "https://sortie.example.org", "Environment", "Variables", "SORTIE_PUBLIC_URL")
	mapped := made.Of("ApiGateway::BasePathMapping")
	if len(mapped) != 1 || mapped[0].Text("BasePath") != "" {
		t.Errorf("got mappings %v, want the root only", mapped)
	}
}

func TestURLHasTheStage(t *testing.T) {
	t.Parallel()
	templates := map[string]template.Template{
		"/dev": deployed(t), "/test": synth(t, map[string]any{
			"stage": "test", "stages": map[string]any{"test": map[string]any{}}, "localstack": "http://127.0.0.1:4600", "arch": "amd64",
		}),
	}
	for end, made := range templates {
		url := template.Flat(made.Outputs["URL"].Value)
		if !strings.HasSuffix(url, end) {
			t.Errorf("got URL %s", url)
		}
		expect(t, functionOf(t, made, "launch"), url, "Environment", "Variables", "SORTIE_PUBLIC_URL")
	}
	if url := template.Flat(templates["/test"].Outputs["URL"].Value); !strings.HasPrefix(url, "http://127.0.0.1:4600/_aws/execute-api/${Api") {
		t.Errorf("LocalStack: got URL %s", url)
	}
}
