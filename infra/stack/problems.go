package stack

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// refusal is an error response that API Gateway itself sends.
type refusal struct {
	kind awsapigateway.ResponseType
	code fault.Code
	why  string
}

// noRoute is the detail of the refusal of an unknown path or method.
const noRoute = "unknown path or method; /openapi.json lists all"

// refusals returns the responses of API Gateway with the faults that the front doors would
// return. If a function fails or cannot be invoked, the fault is Unavailable: the request was
// not acknowledged and may be repeated.
//
// The response to a body above API Gateway's limit (10 MB) or Lambda's (6 MB, with the body in
// base64) cannot be customized (API Gateway Developer Guide, important notes). The limits of the
// functions are below both; see TestOwnLimitOfBodiesComesFirst.
func refusals() []refusal {
	large := fmt.Sprintf("a body has at most %d bytes, that of a worker or an inference request %d", httpkit.BodyLimit, httpkit.WorkerBodyLimit)
	return []refusal{
		{awsapigateway.ResponseType_MISSING_AUTHENTICATION_TOKEN(), fault.NotFound, noRoute},
		{awsapigateway.ResponseType_RESOURCE_NOT_FOUND(), fault.NotFound, noRoute},
		{awsapigateway.ResponseType_ACCESS_DENIED(), fault.Forbidden, "the request is not allowed"},
		{awsapigateway.ResponseType_INVALID_SIGNATURE(), fault.NotFound, noRoute},
		{awsapigateway.ResponseType_WAF_FILTERED(), fault.Forbidden, "the firewall refuses the request"},
		{awsapigateway.ResponseType_REQUEST_TOO_LARGE(), fault.TooLarge, large},
		{awsapigateway.ResponseType_THROTTLED(), fault.Throttled, "too many requests; retry later"},
		{awsapigateway.ResponseType_DEFAULT_4XX(), fault.InvalidRequest, "malformed request"},
		{awsapigateway.ResponseType_INTEGRATION_TIMEOUT(), fault.Unavailable, "the request timed out; retry"},
		{awsapigateway.ResponseType_INTEGRATION_FAILURE(), fault.Unavailable, "the request could not be processed; retry"},
		{awsapigateway.ResponseType_DEFAULT_5XX(), fault.Unavailable, "the request could not be processed; retry"},
	}
}

// problem is a problem that clients of OpenAI's API can read as one of its errors. API Gateway sends the
// same response on all paths.
type problem struct {
	contract.Problem

	Error openai.ErrorDetail `json:"error"`
}

// bodyOf returns the body of a refusal.
func (r refusal) bodyOf(p contract.Problem) string {
	var document any = problem{p, openai.NewError(p.Status, r.code, r.why, "").Error}
	if r.why == noRoute {
		document = httpkit.NewUnknownPath(p)
	}
	body, err := json.Marshal(document)
	if err != nil { // a struct of strings and numbers
		panic(err)
	}
	return string(body)
}

// addProblems makes API Gateway send problem documents like those of httpkit.
func (b *builder) addProblems(api awsapigateway.RestApi) {
	for _, r := range refusals() {
		p := httpkit.ProblemOf(fault.New(r.code, "%s", r.why))
		p.Body.CorrelationID = "$context.requestId"
		headers := map[string]*string{
			"Content-Type":           jsii.String("'application/problem+json'"),
			"Cache-Control":          jsii.String("'no-store'"),
			"X-Content-Type-Options": jsii.String("'nosniff'"),
			"X-Correlation-Id":       jsii.String("context.requestId"),
			"X-Request-Id":           jsii.String("context.requestId"),
		}
		for _, name := range []string{"Retry-After", "X-Backoff-Ms"} {
			if value := p.Header.Get(name); value != "" {
				headers[name] = jsii.String("'" + value + "'")
			}
		}
		if len(b.settings.Origins) == 1 { // a response can name only one
			headers["Access-Control-Allow-Origin"] = jsii.String("'" + b.settings.Origins[0] + "'")
		}
		api.AddGatewayResponse(jsii.String(*r.kind.ResponseType()), &awsapigateway.GatewayResponseOptions{
			Type: r.kind, StatusCode: jsii.String(strconv.Itoa(p.Body.Status)),
			ResponseHeaders: &headers, Templates: &map[string]*string{"application/json": jsii.String(r.bodyOf(p.Body))},
		})
	}
}
