package stack

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/httpkit"
)

// refusal is an answer that API Gateway gives by itself.
type refusal struct {
	kind awsapigateway.ResponseType
	code fault.Code
	why  string
}

// refusals are those answers, told as the front doors would tell them. A
// function that fails or cannot be reached is "not available now": nothing was
// acknowledged, and the request may be repeated.
//
// A body that API Gateway (10 MB) or Lambda (6 MB, with the body in base64) does
// not take is refused in AWS's words, whatever stands here: "Customizing the
// default gateway response for 413 REQUEST_TOO_LARGE isn't currently supported"
// (API Gateway Developer Guide, important notes).
func refusals() []refusal {
	large := fmt.Sprintf("a body has at most %d bytes, a worker's %d", httpkit.BodyLimit, httpkit.WorkerBodyLimit)
	const route = "there is nothing at this path, or not with this method; /openapi.json lists what there is"
	return []refusal{
		{awsapigateway.ResponseType_MISSING_AUTHENTICATION_TOKEN(), fault.NotFound, route},
		{awsapigateway.ResponseType_RESOURCE_NOT_FOUND(), fault.NotFound, route},
		{awsapigateway.ResponseType_ACCESS_DENIED(), fault.Forbidden, "the request is not let in"},
		{awsapigateway.ResponseType_INVALID_SIGNATURE(), fault.NotFound, route},
		{awsapigateway.ResponseType_REQUEST_TOO_LARGE(), fault.TooLarge, large},
		{awsapigateway.ResponseType_THROTTLED(), fault.Throttled, "too many requests; come again later"},
		{awsapigateway.ResponseType_DEFAULT_4XX(), fault.InvalidRequest, "the request cannot be read"},
		{awsapigateway.ResponseType_INTEGRATION_TIMEOUT(), fault.Unavailable, "the answer took too long; try again"},
		{awsapigateway.ResponseType_INTEGRATION_FAILURE(), fault.Unavailable, "the request could not be handled now; try again"},
		{awsapigateway.ResponseType_DEFAULT_5XX(), fault.Unavailable, "the request could not be handled now; try again"},
	}
}

// addProblems has API Gateway answer with problems as httpkit makes them.
func (h *house) addProblems(api awsapigateway.RestApi) {
	for _, r := range refusals() {
		p := httpkit.ProblemOf(fault.New(r.code, "%s", r.why))
		p.Body.CorrelationID = "$context.requestId"
		body, err := json.Marshal(p.Body)
		if err != nil { // a struct of strings and numbers
			panic(err)
		}
		headers := map[string]*string{
			"Content-Type":           jsii.String("'application/problem+json'"),
			"Cache-Control":          jsii.String("'no-store'"),
			"X-Content-Type-Options": jsii.String("'nosniff'"),
			"X-Correlation-Id":       jsii.String("context.requestId"),
		}
		for _, name := range []string{"Retry-After", "X-Backoff-Ms"} {
			if value := p.Header.Get(name); value != "" {
				headers[name] = jsii.String("'" + value + "'")
			}
		}
		if len(h.settings.Origins) == 1 { // API Gateway cannot choose among several
			headers["Access-Control-Allow-Origin"] = jsii.String("'" + h.settings.Origins[0] + "'")
		}
		api.AddGatewayResponse(jsii.String(*r.kind.ResponseType()), &awsapigateway.GatewayResponseOptions{
			Type: r.kind, StatusCode: jsii.String(strconv.Itoa(p.Body.Status)),
			ResponseHeaders: &headers, Templates: &map[string]*string{"application/json": jsii.String(string(body))},
		})
	}
}
