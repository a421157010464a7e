package stack

import (
	"net/http"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/httpkit"
)

// bufferedTimeout is how long API Gateway waits for a front door, in ms: its
// own most, and more than the function may take. A streamed answer may take
// longer.
const bufferedTimeout = 29_000

// burst is how many requests may come at once, as a multiple of the rate.
const burst = 2

// anyMethod is what API Gateway calls those that a resource does not name.
const anyMethod = "ANY"

// accessLog is what is logged of a request: never a header, a query string or
// a path with what a client put into it.
const accessLog = `{"requestId":"$context.requestId","extendedRequestId":"$context.extendedRequestId",` +
	`"time":"$context.requestTimeEpoch","method":"$context.httpMethod","route":"$context.resourcePath","status":"$context.status",` +
	`"bytes":"$context.responseLength","latency":"$context.responseLatency","functionLatency":"$context.integrationLatency",` +
	`"errorType":"$context.error.responseType"}`

// route is a method of the API.
type route struct {
	httpkit.Route
	function string
}

// routes lists what the front doors serve, HEAD beside each GET, sorted by path
// and method.
func routes() []route {
	var all []route
	for _, name := range named(front) {
		for _, r := range functions[name].routes {
			all = append(all, route{r, name})
			if r.Method == http.MethodGet {
				r.Method = http.MethodHead
				all = append(all, route{r, name})
			}
		}
	}
	slices.SortFunc(all, func(a, b route) int {
		return slices.Compare([]string{a.Pattern, a.Method}, []string{b.Pattern, b.Method})
	})
	return all
}

// newAPI makes the API without its methods, so that functions can be told its
// URL.
func (h *house) newAPI() awsapigateway.RestApi {
	s := h.settings
	logs := h.newLogGroup("LogsAccess", "")
	props := &awsapigateway.RestApiProps{
		RestApiName: jsii.String(h.name("api")), Description: jsii.String("Sortie, stage " + s.Stage),
		EndpointTypes: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		// Bytes go in and out as they are.
		BinaryMediaTypes: jsii.Strings("*/*"),
		// Access logs need a role that the account has once for all its APIs.
		CloudWatchRole: jsii.Bool(true), CloudWatchRoleRemovalPolicy: awscdk.RemovalPolicy_RETAIN,
		DisableExecuteApiEndpoint: jsii.Bool(s.Domain != ""),
		DeployOptions: &awsapigateway.StageOptions{
			StageName:            jsii.String(s.Stage),
			ThrottlingRateLimit:  num(s.ClientRate),
			ThrottlingBurstLimit: num(burst * s.ClientRate),
			MethodOptions:        h.throttles(),
			LoggingLevel:         awsapigateway.MethodLoggingLevel_OFF, DataTraceEnabled: jsii.Bool(false),
			TracingEnabled:       jsii.Bool(s.Tracing),
			AccessLogDestination: awsapigateway.NewLogGroupLogDestination(logs),
			AccessLogFormat:      awsapigateway.AccessLogFormat_Custom(jsii.String(accessLog)),
		},
	}
	api := awsapigateway.NewRestApi(h.stack, jsii.String("Api"), props)
	api.Node().TryRemoveChild(jsii.String("Endpoint")) // the address without the domain
	h.addProblems(api)
	h.url = h.addressOf(api)
	return api
}

// addressOf is where the API is reached.
func (h *house) addressOf(api awsapigateway.RestApi) string {
	s := h.settings
	switch {
	case s.LocalStack != "":
		return s.LocalStack + "/_aws/execute-api/" + *api.RestApiId() + "/" + s.Stage
	case s.Domain == "":
		return "https://" + *api.RestApiId() + ".execute-api." + *h.stack.Region() + "." + *h.stack.UrlSuffix() + "/" + s.Stage
	}
	domain := awsapigateway.NewDomainName(h.stack, jsii.String("Domain"), &awsapigateway.DomainNameProps{
		DomainName:     jsii.String(s.Domain),
		Certificate:    awscertificatemanager.Certificate_FromCertificateArn(h.stack, jsii.String("Certificate"), jsii.String(s.Certificate)),
		EndpointType:   awsapigateway.EndpointType_REGIONAL,
		SecurityPolicy: awsapigateway.SecurityPolicy_TLS_1_2,
	})
	awsapigateway.NewBasePathMapping(h.stack, jsii.String("DomainMapping"), &awsapigateway.BasePathMappingProps{
		DomainName: domain, RestApi: api, Stage: api.DeploymentStage(),
	})
	h.result("DomainTarget", *domain.DomainNameAliasDomainName(), "what the domain's CNAME has to be")
	return "https://" + s.Domain
}

// throttles gives the methods of workers their own rate; the stage's, which
// counts for each method by itself, is that of clients.
func (h *house) throttles() *map[string]*awsapigateway.MethodDeploymentOptions {
	options := map[string]*awsapigateway.MethodDeploymentOptions{}
	for _, r := range routes() {
		if r.Access == httpkit.ForWorkers {
			options[r.Pattern+"/"+r.Method] = &awsapigateway.MethodDeploymentOptions{
				ThrottlingRateLimit: num(h.settings.WorkerRate), ThrottlingBurstLimit: num(burst * h.settings.WorkerRate),
				LoggingLevel: awsapigateway.MethodLoggingLevel_OFF, DataTraceEnabled: jsii.Bool(false),
			}
		}
	}
	return &options
}

// addRoutes adds the methods, each with its function behind it. A method that a
// path does not have goes there too: the front door says which ones it has, and
// whether a page of another origin may ask.
func (h *house) addRoutes(api awsapigateway.RestApi) {
	doors := map[string]awsapigateway.Integration{}
	for _, name := range named(front) {
		options := &awsapigateway.LambdaIntegrationOptions{
			ScopePermissionToMethod: jsii.Bool(false),
			Timeout:                 awscdk.Duration_Millis(num(bufferedTimeout)),
		}
		if name == "download" && h.settings.Stream {
			options.ResponseTransferMode = awsapigateway.ResponseTransferMode_STREAM
			options.Timeout = awscdk.Duration_Seconds(num(streamTimeout + 1))
		}
		doors[name] = awsapigateway.NewLambdaIntegration(h.functions[name], options)
	}
	for _, r := range routes() {
		resource := api.Root().ResourceForPath(jsii.String(r.Pattern))
		resource.AddMethod(jsii.String(r.Method), doors[r.function], nil)
		if resource.Node().TryFindChild(jsii.String(anyMethod)) == nil {
			resource.AddMethod(jsii.String(anyMethod), doors[r.function], nil)
		}
	}
}
