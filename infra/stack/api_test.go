package stack_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/infra/template"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit/apicheck"
)

// pathOf is the path of an API's resource.
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

// methods are those of the template: the function behind each.
func methods(t *testing.T, made template.Template) map[string]string {
	t.Helper()
	behind := map[string]string{}
	for _, m := range made.Of("ApiGateway::Method") {
		uri := m.Text("Integration", "Uri")
		_, function, _ := strings.Cut(uri, "/functions/${")
		function, _, _ = strings.Cut(function, ".Arn}")
		behind[m.Text("HttpMethod")+" "+pathOf(t, made, strings.Trim(m.Text("ResourceId"), "${}"))] = strings.ToLower(strings.TrimRight(function, "0123456789ABCDEF"))
	}
	return behind
}

// TestTheAPIIsWhatIsDescribed: openapi.yaml, the front doors' routes and the
// methods that are deployed are one API.
func TestTheAPIIsWhatIsDescribed(t *testing.T) {
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
	behind := methods(t, deployed(t))
	served, doors := map[string]bool{}, map[string]string{}
	for method, function := range behind {
		served[method] = true
		_, path, _ := strings.Cut(method, " ")
		if doors[path] != "" && doors[path] != function {
			t.Errorf("%s has two front doors, %s and %s: which says what methods it has?", path, doors[path], function)
		}
		doors[path] = function
	}
	if diff := cmp.Diff(described, served); diff != "" {
		t.Errorf("openapi.yaml (-) and the template (+) differ:\n%s", diff)
	}
	for method, function := range map[string]string{
		"POST /export/{format}": "export", "POST /callback/{task_id}": "callback", "GET /status/{task_id}": "status",
		"GET /download/{task_id}": "download", "GET /v1/tasks": "tasks",
	} {
		if behind[method] != function {
			t.Errorf("%s goes to %q, not to %s", method, behind[method], function)
		}
	}
}

func TestDownloadsAreStreamedWhereTheyCanBe(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{"STREAM": deployed(t), "": synth(t, map[string]any{"stream": false})} {
		found := 0
		for _, m := range made.Of("ApiGateway::Method") {
			if !strings.Contains(m.Text("Integration", "Uri"), "${Download") {
				if m.Text("Integration", "ResponseTransferMode") != "" {
					t.Errorf("%s is streamed", m.ID)
				}
				continue
			}
			found++
			expect(t, m, name, "Integration", "ResponseTransferMode")
			if streams := strings.HasSuffix(m.Text("Integration", "Uri"), "/response-streaming-invocations"); streams != (name == "STREAM") {
				t.Errorf("%s calls %s", m.ID, m.Text("Integration", "Uri"))
			}
		}
		if found == 0 {
			t.Error("nothing goes to download")
		}
	}
}

// TestNobodyIsGivenUpBeforeTheyCanAnswer: a function's time is shorter than its
// caller's, and longer than what it waits for by itself.
func TestNobodyIsGivenUpBeforeTheyCanAnswer(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	for _, m := range made.Of("ApiGateway::Method") {
		waits, err := strconv.Atoi(m.Text("Integration", "TimeoutInMillis"))
		if err != nil {
			t.Errorf("%s waits for an unknown time", m.ID)
		}
		_, id, _ := strings.Cut(m.Text("Integration", "Uri"), "/functions/${")
		id, _, _ = strings.Cut(id, ".Arn}")
		takes, err := strconv.Atoi(made.Resources[id].Text("Timeout"))
		if err != nil || takes*1000 >= waits {
			t.Errorf("%s waits %d ms for %s, which may take %d s", m.ID, waits, id, takes)
		}
	}
	if seconds, err := strconv.Atoi(functionOf(t, made, "sweep").Text("Timeout")); err != nil || seconds >= 60 {
		t.Errorf("a sweep may take %d s, and the next one comes after 60", seconds)
	}
}

func TestAccessLogsHaveNothingOfTheClients(t *testing.T) {
	t.Parallel()
	for _, stage := range deployed(t).Of("ApiGateway::Stage") {
		format := stage.Text("AccessLogSetting", "Format")
		if !json.Valid([]byte(format)) || !strings.HasPrefix(stage.Text("AccessLogSetting", "DestinationArn"), "${LogsAccess.Arn}") {
			t.Errorf("the access log is %s to %s", format, stage.Text("AccessLogSetting", "DestinationArn"))
		}
		for _, secret := range []string{"header", "querystring", "$context.path\"", "authorizer", "identity"} {
			if strings.Contains(format, secret) {
				t.Errorf("the access log has %s: %s", secret, format)
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
		t.Errorf("the rates are %v", rates)
	}
	if slices.Contains(sortedKeys(rates), "POST /~1export~1{format}") {
		t.Error("clients have a rate of their own, though the stage's is theirs")
	}
}

// TestAPIGatewayAnswersLikeTheFrontDoors: what it says by itself is a problem
// too.
func TestAPIGatewayAnswersLikeTheFrontDoors(t *testing.T) {
	t.Parallel()
	answers := map[string]string{}
	for _, r := range deployed(t).Of("ApiGateway::GatewayResponse") {
		var problem contract.Problem
		if err := json.Unmarshal([]byte(r.At("ResponseTemplates").(map[string]any)["application/json"].(string)), &problem); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
		if strconv.Itoa(problem.Status) != r.Text("StatusCode") || problem.Detail == "" || problem.CorrelationID != "$context.requestId" {
			t.Errorf("%s answers %s with %+v", r.ID, r.Text("StatusCode"), problem)
		}
		expect(t, r, "'application/problem+json'", "ResponseParameters", "gatewayresponse.header.Content-Type")
		answers[r.Text("ResponseType")] = r.Text("StatusCode") + " " + problem.Code
	}
	for kind, want := range map[string]string{
		"MISSING_AUTHENTICATION_TOKEN": "404 NOT_FOUND", "THROTTLED": "429 THROTTLED", "REQUEST_TOO_LARGE": "413 TOO_LARGE",
		"DEFAULT_5XX": "503 UNAVAILABLE", "INTEGRATION_FAILURE": "503 UNAVAILABLE", "DEFAULT_4XX": "400 INVALID_REQUEST",
	} {
		if answers[kind] != want {
			t.Errorf("%s is answered with %s, not %s", kind, answers[kind], want)
		}
	}
}

func TestADomainIsTheOnlyAddress(t *testing.T) {
	t.Parallel()
	made := everything(t)
	expect(t, made.Of("ApiGateway::DomainName")[0], "TLS_1_2", "SecurityPolicy")
	expect(t, made.Of("ApiGateway::RestApi")[0], "true", "DisableExecuteApiEndpoint")
	if url := template.Flat(made.Outputs["URL"].Value); url != "https://sortie.example.org" {
		t.Errorf("the URL is %s", url)
	}
	expect(t, functionOf(t, made, "launch"), "https://sortie.example.org", "Environment", "Variables", "SORTIE_PUBLIC_URL")
	mapped := made.Of("ApiGateway::BasePathMapping")
	if len(mapped) != 1 || mapped[0].Text("BasePath") != "" {
		t.Errorf("the API is not at the domain's root alone: %v", mapped)
	}
}

func TestTheURLHasTheStage(t *testing.T) {
	t.Parallel()
	told := map[string]template.Template{
		"/dev": deployed(t), "/test": synth(t, map[string]any{"stage": "test", "localstack": "http://127.0.0.1:4600", "arch": "amd64"}),
	}
	for end, made := range told {
		url := template.Flat(made.Outputs["URL"].Value)
		if !strings.HasSuffix(url, end) {
			t.Errorf("the URL is %s", url)
		}
		expect(t, functionOf(t, made, "launch"), url, "Environment", "Variables", "SORTIE_PUBLIC_URL")
	}
	if url := template.Flat(told["/test"].Outputs["URL"].Value); !strings.HasPrefix(url, "http://127.0.0.1:4600/_aws/execute-api/${Api") {
		t.Errorf("on LocalStack the URL is %s", url)
	}
}
